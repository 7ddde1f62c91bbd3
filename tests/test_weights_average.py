"""The script that averages the weights of two models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle
import pytest
from command import run_here

from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = ["春", "风", "秋", "月"]


def save(folder: Path, seed: int, size: int = 4, words: list[str] = WORDS) -> Path:
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
