"""The Chinese recipe as a user meets it: trained on its sample, evaluated, exported with replies, asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import ROOT, run_here

RECIPE = ROOT / "configs" / "empathetic_zh.yaml"
TINY = [
    *(
        "model.width=16",
        "model.num_heads=2",
        "model.inner_width=32",
        "model.num_layers=1",
        "model.copy_depth=4",
    ),
    *("data.piece_count=500", "data.batch_size=8", "emotion.ngram_buckets=500", "training.max_steps=3"),
    *("training.show_examples=1", "decoding.beam_size=2", "decoding.max_length=6"),
]


def settings(*more: str) -> list[str]:
    """Return the settings as arguments."""
    return [part for setting in (*TINY, *more) for part in ("-o", setting)]


@pytest.fixture(scope="module")
def best(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bundle of a run on the sample, with one conversation more."""
    folder = tmp_path_factory.mktemp("chinese")
    more = folder / "more.jsonl"
    more.write_text('{"turns": ["我很累。", "辛苦了。", "谢谢你。", "不客气。"]}\n', encoding="utf-8")
    own = settings(f"output_dir={folder / 'run'}", f"data.more={more}")
    outcome = run_here("train", "-c", RECIPE, *own)
    assert outcome.status == 0, outcome.stderr
    assert "further conversations" in outcome.stderr and "learning 500 pieces" in outcome.stderr
    return folder / "run" / "best"


def test_a_resumed_run_and_one_from_other_weights_keep_the_pieces(best: Path, tmp_path: Path) -> None:
    pieces = (best / "pieces.model").read_bytes()
    own = settings(f"output_dir={tmp_path}", f"training.start_from={best}", "data.train=small_talk")
    outcome = run_here("train", "-c", RECIPE, *own)
    assert outcome.status == 0, outcome.stderr
    assert (
        "pieces from a sample" not in outcome.stderr
        and (tmp_path / "best" / "pieces.model").read_bytes() == pieces
    )


def test_it_is_measured_exported_with_replies_and_asked(best: Path, tmp_path: Path) -> None:
    measured = run_here(
        "evaluate", "-c", RECIPE, "--weights", best, "--data", "sample", "--json", *settings()
    )
    assert measured.status == 0, measured.stderr
    figures = json.loads(measured.stdout)
    assert figures["n"] == 35 and 1 < figures["perplexity"] < 1e4 and 0 <= figures["common_openings"] <= 1
    made = run_here("export", "--weights", best, "--output", tmp_path / "out", "--data", "sample")
    assert made.status == 0, made.stderr
    assert (tmp_path / "out" / "replies.safetensors").exists()
    asked = run_here(
        "predict", "-c", RECIPE, "--weights", tmp_path / "out", "--json", "我養了十年的貓昨天走了"
    )
    assert asked.status == 0, asked.stderr
    answer = json.loads(asked.stdout)
    assert answer["predictions"][0]["origin"] in ("person", "model") and len(answer["emotions"]) == 5
    assert {"sad", "happy", "neutral", "calm", "angry", "annoyed", "anxious", "surprised"} > {
        *answer["emotions"]
    }
