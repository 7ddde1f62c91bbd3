"""The makers' workshop: every script of `tools/weights` runs to its end on tiny data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import paddle
import pytest
from command import ROOT, run_here

import paddle_dialog
from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

TINY = "data.min_count=1 training.max_steps=1 "
TRANSFORMER = TINY + "model.width=16 model.inner_width=16 model.num_heads=2"
SENTIMENT = TINY + "model.embedding_size=8 model.hidden_size=8 linear.buckets=64"
ASKED = {
    "couplet": "春风",
    "poem": "明月",
    "translation": "上闻之。",
    "sentiment_zh": "很好",
    "sentiment_en": "good",
}


def run_script(task, data, folder):
    """Run the script of a task; return the bundles that it made."""
    overrides = SENTIMENT if task == "sentiment" else TRANSFORMER
    options = " ".join(f"-o {override}" for override in overrides.split())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = {name: str(value) for name, value in data.items()}
    environment = {**os.environ, **given, "OPTIONS": options, "PATH": path}
    command = ["bash", f"tools/weights/{task}/make.sh", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    made = folder / "bundles"
    return sorted(made.iterdir()) if made.is_dir() else [folder / "bundle"]


def answers(bundle, text):
    return len(paddle_dialog.load(bundle).predict([text])) == 1


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_couplet_weights(tmp_path):
    pairs = [line.split("\t") for line in (ROOT / "tasks/couplet/sample.tsv").read_text("utf-8").splitlines()]
    lines = [f"{a}\t{b}" for a, b in pairs[:24]]
    couplets, verse = write(tmp_path / "couplets.tsv", *lines), write(tmp_path / "verse.tsv", *lines[:8])
    rated = [
        '{"answers": ['
        + ", ".join(
            f'{{"first": "{a}", "second": "{b}", "rating": {rating}, "template": "{"？" * len(a)}"}}'
            for rating, (a, b) in enumerate(pairs[start : start + 6])
        )
        + "]}"
        for start in (0, 6, 12)
    ]
    data = {
        "COUPLET_TRAIN": couplets,
        "COUPLET_DEV": couplets,
        "COUPLET_VERSE": verse,
        "COUPLET_RATINGS": write(tmp_path / "ratings.jsonl", *rated),
    }
    (bundle,) = run_script("couplet", data, tmp_path / "runs")
    assert answers(bundle, ASKED["couplet"])
    assert paddle_dialog.load(bundle).compose(count=1)


@pytest.mark.parametrize(("task", "sample"), [("poem", "sample.txt"), ("translation", "sample.tsv")])
def test_the_weights_of(task, sample, tmp_path):
    data: dict[str, Path | str] = {
        f"{task.upper()}_{part}": ROOT / "tasks" / task / sample for part in ("TRAIN", "DEV")
    }
    data["POEM_PAIRS"] = ROOT / "tasks/couplet/sample.tsv"
    (bundle,) = run_script(task, data, tmp_path / "runs")
    assert answers(bundle, ASKED[task])


def test_the_sentiment_weights(tmp_path):
    data: dict[str, Path | str] = {
        f"ZH_{part}": ROOT / "tasks/sentiment/sample_zh.tsv" for part in ("TRAIN", "DEV")
    }
    data |= {f"EN_{part}": ROOT / "tasks/sentiment/sample_en.tsv" for part in ("TRAIN", "DEV")}
    data["GOEMOTIONS"] = write(
        tmp_path / "goemotions.tsv",
        "train\tjoy\tthat is good",
        "dev\tanger,joy\tboth at once",
        "test\tanger,neutral\tthat is bad",
        "train\tneutral\tthat is",
    )
    bundles = run_script("sentiment", data, tmp_path / "runs")
    assert [bundle.name for bundle in bundles] == ["sentiment_en", "sentiment_zh"]
    assert all(answers(bundle, ASKED[bundle.name]) for bundle in bundles)
    assert (tmp_path / "runs/goemotions.tsv").read_text("utf-8") == "1\tthat is good\n0\tthat is bad\n"


WORDS = ["春", "风", "秋", "月"]


def save(folder, seed, size=4, words=WORDS):
    """Save a random model and return its bundle."""
    model = LstmAttentionConfig(embedding_size=size, hidden_size=4, num_layers=1)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *words])
    paddle.seed(seed)
    weights = read_weights(Seq2Seq(model, len(vocabulary)))
    config = dump(CoupletConfig(task="couplet", model=model))
    save_bundle(Bundle("couplet", config, {"text": vocabulary}, weights), folder)
    return folder


def test_weights_are_the_weighted_mean(tmp_path):
    first, second, output = save(tmp_path / "a", 1), save(tmp_path / "b", 2), tmp_path / "c"
    outcome = run_here("weights/average", first, second, "--share", "0.25", "--output", output)
    assert outcome.status == 0, outcome.stderr
    one, other, mean = (load_bundle(folder).weights for folder in (first, second, output))
    assert one.keys() == mean.keys()
    for name, array in mean.items():
        np.testing.assert_allclose(array, 0.75 * one[name] + 0.25 * other[name], rtol=1e-6, atol=1e-7)
        assert array.dtype == np.float32


@pytest.mark.parametrize(
    ("size", "words", "share", "message"),
    [
        (5, WORDS, "0.5", "differ in their task, vocabulary or shape"),
        (4, WORDS[::-1], "0.5", "differ in their task, vocabulary or shape"),
        (4, WORDS, "2", "is 2.0"),
    ],
)
def test_other_models_and_shares_are_refused(size, words, share, message, tmp_path):
    first, second = save(tmp_path / "a", 1), save(tmp_path / "b", 2, size, words)
    outcome = run_here("weights/average", first, second, "--share", share, "--output", tmp_path / "c")
    assert message in outcome.error_line() and not (tmp_path / "c").exists()
