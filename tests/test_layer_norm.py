"""Layer norm with its own gradient, against Paddle's."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_dialog.layers.layer_norm import LayerNorm, NormWithOwnGradient

WIDTH = 24


def random(*shape: int, seed: int, offset: float = 0.0) -> paddle.Tensor:
    values = np.random.default_rng(seed).standard_normal(shape).astype("float32") + offset
    return paddle.to_tensor(values, stop_gradient=False)


def gradients(norm: nn.Layer, x: paddle.Tensor, upstream: paddle.Tensor) -> list[np.ndarray]:
    for tensor in (x, norm.weight, norm.bias):
        tensor.clear_gradient(set_to_zero=False)
    y = norm(x)
    y.backward(upstream)
    return [y.numpy(), *(tensor.grad.numpy() for tensor in (x, norm.weight, norm.bias))]


@pytest.mark.parametrize("shape", [(5, WIDTH), (3, 4, WIDTH), (2, 1, 3, WIDTH)])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_values_and_gradients_are_those_of_paddle(shape: tuple[int, ...], offset: float) -> None:
    own, other = LayerNorm(WIDTH, 1e-6), nn.LayerNorm(WIDTH, 1e-6)
    for name, seed in (("weight", 1), ("bias", 2)):
        for norm in (own, other):
            getattr(norm, name).set_value(random(WIDTH, seed=seed))
    x, upstream = random(*shape, seed=3, offset=offset), random(*shape, seed=4)
    for found, expected in zip(gradients(own, x, upstream), gradients(other, x, upstream), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-5 * (1.0 + offset))


def test_rows_without_variance_have_finite_gradients() -> None:
    x = paddle.ones([2, WIDTH])
    x.stop_gradient = False
    assert all(np.isfinite(value).all() for value in gradients(LayerNorm(WIDTH), x, random(2, WIDTH, seed=1)))


def test_it_serves_where_everything_learns_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = NormWithOwnGradient.apply
    monkeypatch.setattr(NormWithOwnGradient, "apply", lambda *args: calls.append(1) or original(*args))
    norm, x = LayerNorm(WIDTH), random(2, WIDTH, seed=1)
    norm(x)
    assert len(calls) == 1
    norm(x.detach())
    with paddle.no_grad():
        norm(x)
    norm.weight.stop_gradient = True
    norm(x).sum().backward()
    assert len(calls) == 1
    assert norm.weight.grad is None and norm.bias.grad is not None
