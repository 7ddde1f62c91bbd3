"""The judge of 下联: the command that fits it, what it does to the order, and what it is not asked."""

from __future__ import annotations

import json
from pathlib import Path

import paddle
import pytest
from command import run_here
from couplet_toys import LEVEL, OBLIQUE

import paddle_dialog
from paddle_dialog.bundle.folder import Bundle, load_bundle, read_weights, save_bundle
from paddle_dialog.command_line import run_tool
from paddle_dialog.config import dump
from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig, TransformerConfig
from paddle_dialog.config.schema import DecodingConfig
from paddle_dialog.judge import JUDGE
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.couplet.config import CoupletConfig, CoupletDataConfig, CoupletRerankConfig, RulesConfig
from tasks.couplet.data.marks import MARKS
from tasks.couplet.judge_fitting import main, make_parser

TRANSFORMER = TransformerConfig(width=16, num_heads=2, inner_width=16, encoder_layers=1, decoder_layers=1)
FIRSTS = ["雨雪月", "春山雨", "柳花", "山", "月花风"]
LIKED = "山"


def save(model: ModelConfig, folder: Path) -> Path:
    """Save a random model, which knows both directions, and return its bundle."""
    config = CoupletConfig(
        task="couplet",
        model=model,
        data=CoupletDataConfig(max_length=10),
        decoding=DecodingConfig(max_length=10, beam_size=12),
        rules=RulesConfig(tone_weight=0.0),
        rerank=CoupletRerankConfig(reverse=0.5, candidates=12),
    )
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *LEVEL, *OBLIQUE, *MARKS])
    paddle.seed(4)
    weights = read_weights(Seq2Seq(model, len(vocabulary)))
    save_bundle(Bundle("couplet", dump(config), {"text": vocabulary}, weights), folder)
    return folder


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bundle of a random Transformer."""
    return save(TRANSFORMER, tmp_path_factory.mktemp("judge") / "shipped")


def fit(shipped: Path, ratings: Path, output: Path) -> int:
    """Call the command."""
    config = shipped / "config.yaml"
    command = f"-c {config} --weights {shipped} --ratings {ratings} --output {output}"
    return run_tool(main, make_parser(), command.split())


def test_a_fitted_judge_puts_first_what_the_raters_liked(
    shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predictor = paddle_dialog.load(shipped)
    lines = []
    for first, candidates in zip(FIRSTS, predictor.predict(FIRSTS, n_best=12), strict=True):
        rated = [
            {"text": c.text, "fluency": mark, "match": mark, "meaning": mark}
            for c in candidates
            for mark in [5 if LIKED in c.text else 1]
        ]
        lines.append(json.dumps({"first": first, "seconds": [*rated, {**rated[0], "text": "太长了太长了"}]}))
    (tmp_path / "ratings.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert fit(shipped, tmp_path / "ratings.jsonl", tmp_path / "judged") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("judge: 1.0\nmodel: ") and "\nreverse: " in printed
    assert JUDGE in load_bundle(tmp_path / "judged").extra

    def answers(weights: Path, *changes: str) -> list[str]:
        config = ("-c", weights / "config.yaml", "--weights", weights)
        asked = run_here("predict", *config, "-o", "rerank.judge=1e3", *changes, "--n-best", 4, *FIRSTS[:3])
        assert asked.status == 0, asked.stderr
        assert ("no judge (judge.safetensors)" in asked.stderr) == (weights == shipped)
        return [line.split()[-1] for line in asked.stdout.splitlines() if line.startswith("  ")]

    judged, before = answers(tmp_path / "judged"), answers(shipped)
    assert len(judged) == len(before) == 12
    assert sum(LIKED in text for text in judged) > sum(LIKED in text for text in before)
    # A 上联 has no judge.
    assert answers(tmp_path / "judged", "--second") == answers(shipped, "--second")


def test_ratings_that_are_none_and_models_without_states_are_told(
    shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ratings = tmp_path / "ratings.jsonl"
    ratings.write_text('{"first": "春雨", "seconds": [{"text": "夏风"}]}\n', encoding="utf-8")
    assert fit(shipped, ratings, tmp_path / "x") == 2
    assert f"{ratings}:1: KeyError('fluency'); a line must be" in capsys.readouterr().err
    ratings.write_text("\n", encoding="utf-8")
    assert fit(shipped, ratings, tmp_path / "x") == 2
    assert "no ratings in this file" in capsys.readouterr().err
    lstm = save(LstmAttentionConfig(embedding_size=8, hidden_size=8, num_layers=1), tmp_path / "lstm")
    rated = {"text": "山", "fluency": 1, "match": 2, "meaning": 3}
    ratings.write_text(json.dumps({"first": "风", "seconds": [rated]}), encoding="utf-8")
    assert fit(lstm, ratings, tmp_path / "x") == 2
    assert "rerank.judge: this model shows no states to judge" in capsys.readouterr().err
