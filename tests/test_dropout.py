"""Dropout on a CPU: what is dropped, how often, and along which axes masks are shared."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from paddle_dialog.layers.operators import Dropout, dropout_factors


def test_the_share_that_is_dropped_and_what_the_rest_is_divided_by() -> None:
    paddle.seed(3)
    factors = dropout_factors([400, 500], 0.2).numpy()
    np.testing.assert_allclose(np.unique(factors), [0.0, 1.25])
    assert (factors == 0.0).mean() == pytest.approx(0.2, abs=0.004)  # over four standard deviations
    # No neighbour depends on the one before it.
    assert ((factors[:, 1:] == 0.0) & (factors[:, :-1] == 0.0)).mean() == pytest.approx(0.04, abs=0.003)


def test_a_mask_is_shared_along_the_other_axes_and_is_that_of_the_gradient() -> None:
    paddle.seed(4)
    x = paddle.rand([3, 5, 7]) + 1.0
    x.stop_gradient = False
    y = Dropout(0.5, axis=[0, 2])(x)
    y.sum().backward()
    factors = (y / x).numpy()
    np.testing.assert_allclose(factors, np.broadcast_to(factors[:, :1], factors.shape), rtol=1e-6)
    assert len({row.tobytes() for row in factors[:, 0] > 0.0}) == 3
    np.testing.assert_allclose(x.grad.numpy(), factors, rtol=1e-6)


def test_a_seed_brings_the_same_mask_again() -> None:
    x, masks = paddle.ones([64]), []
    for seed in (1, 1, 2):
        paddle.seed(seed)
        masks.append(Dropout(0.5)(x).numpy())
    np.testing.assert_array_equal(masks[0], masks[1])
    assert (masks[0] != masks[2]).any()


def test_evaluation_and_the_ends_of_the_range() -> None:
    x = paddle.rand([4, 4])
    layer = Dropout(0.5)
    layer.eval()
    assert layer(x) is x
    assert Dropout(0.0)(x) is x
    assert not Dropout(1.0)(x).numpy().any()
