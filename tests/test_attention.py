"""What attention does at the edges; that scores and weights are the formulas, `test_recurrent.py` shows."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from paddle_dialog.layers.attention import Attention, Score, ScoreName

NAMES = pytest.mark.parametrize("name", ["additive", "dot", "scaled_dot", "bilinear"])


@pytest.mark.parametrize(
    ("name", "parameters"), [("dot", 0), ("scaled_dot", 0), ("bilinear", 16), ("additive", 36)]
)
def test_parameter_count(name: ScoreName, parameters: int) -> None:
    assert sum(parameter.size for parameter in Score(name, 4).parameters()) == parameters


@NAMES
def test_a_fully_masked_row_gives_zero_and_finite_gradients(name: ScoreName) -> None:
    attention, query = Attention(name, 4), paddle.rand([2, 4])
    values = paddle.rand([2, 3, 4])
    values.stop_gradient = False
    mask = paddle.to_tensor([[False] * 3, [True] * 3])
    context, weights = attention(query, attention.score.prepare(values), values, mask)
    context.sum().backward()
    assert not context.numpy()[0].any() and not weights.numpy()[0].any()
    assert np.isfinite(values.grad.numpy()).all()
