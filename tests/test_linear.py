"""The linear map with a bias that learns by a product, against Paddle's."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_dialog.layers.operators import Linear, add_bias


@pytest.mark.parametrize("shape", [(6, 5), (3, 4, 5)])
def test_values_and_gradients_are_those_of_paddle(shape: tuple[int, ...]) -> None:
    paddle.seed(1)
    own, other = Linear(5, 7), nn.Linear(5, 7)
    own.bias.set_value(paddle.rand([7]))
    other.set_state_dict(own.state_dict())
    x = paddle.rand(shape)
    x.stop_gradient = False
    results = []
    for layer in (own, other):
        x.clear_gradient(set_to_zero=False)
        y = layer(x)
        y.backward(paddle.arange(y.size, dtype="float32").reshape(y.shape))
        results.append([tensor.numpy() for tensor in (y, x.grad, layer.weight.grad, layer.bias.grad)])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_frozen_bias_and_a_missing_one_get_no_gradient() -> None:
    layer = Linear(5, 7)
    layer.bias.stop_gradient = True
    layer(paddle.rand([2, 5])).sum().backward()
    assert layer.bias.grad is None and layer.weight.grad is not None
    assert Linear(5, 7, bias=False).bias is None


def test_a_bias_learns_where_its_input_does_not() -> None:
    bias = paddle.zeros([3])
    bias.stop_gradient = False
    add_bias(paddle.ones([4, 3]), bias).sum().backward()
    np.testing.assert_allclose(bias.grad.numpy(), [4.0, 4.0, 4.0])
