"""The mean of two models of one shape."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle
import pytest
from couplet_toys import LEVEL

from paddle_dialog.bundle.averaging import main, make_parser
from paddle_dialog.bundle.folder import Bundle, load_bundle, read_weights, save_bundle
from paddle_dialog.command_line import run_tool
from paddle_dialog.config.loader import dump
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.couplet.config import CoupletConfig


def save(folder: Path, seed: int, size: int = 4) -> Path:
    """Save a random model and return its bundle."""
    model = LstmAttentionConfig(embedding_size=size, hidden_size=4, num_layers=1)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *LEVEL])
    paddle.seed(seed)
    weights = read_weights(Seq2Seq(model, len(vocabulary)))
    save_bundle(
        Bundle("couplet", dump(CoupletConfig(task="couplet", model=model)), {"text": vocabulary}, weights),
        folder,
    )
    return folder


def average(first: Path, second: Path, share: str, output: Path) -> int:
    """Call the command."""
    command = [str(first), str(second), "--share", share, "--output", str(output)]
    return run_tool(main, make_parser(), command)


def test_weights_are_the_weighted_mean(tmp_path: Path) -> None:
    first, second = save(tmp_path / "a", 1), save(tmp_path / "b", 2)
    assert average(first, second, "0.25", tmp_path / "c") == 0
    one, other, mean = (load_bundle(folder).weights for folder in (first, second, tmp_path / "c"))
    assert one.keys() == mean.keys()
    for name, array in mean.items():
        np.testing.assert_allclose(array, 0.75 * one[name] + 0.25 * other[name], rtol=1e-6, atol=1e-7)
        assert array.dtype == np.float32


@pytest.mark.parametrize(
    ("size", "share", "said"), [(5, "0.5", "differ in their task, vocabulary or shape"), (4, "2", "is 2.0")]
)
def test_other_shapes_and_shares_are_refused(
    size: int, share: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = save(tmp_path / "a", 1), save(tmp_path / "b", 2, size)
    assert average(first, second, share, tmp_path / "c") == 2
    assert said in capsys.readouterr().err and not (tmp_path / "c").exists()
