"""A linear map whose bias gradient is fast on a CPU."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.autograd import PyLayer


class Linear(nn.Linear):
    """`nn.Linear`, whose bias is added by `add_bias`.

    Args:
        in_features: size of the input's last axis.
        out_features: size of the output's.
        bias: whether there is one.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias_attr=None if bias else False)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., in] to [..., out]."""
        return super().forward(x) if self.bias is None else add_bias(paddle.matmul(x, self.weight), self.bias)


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Return `x` [..., D] + `bias` [D]."""
    trains = paddle.is_grad_enabled() and not (x.stop_gradient or bias.stop_gradient)
    if trains and x.place.is_cpu_place() and x.dtype == paddle.float32:
        return _Bias.apply(x, bias)
    return x + bias


def column_sums(x: Tensor) -> Tensor:
    """Sum [N, D] to [D] as a product with ones, in at most a sixth of the time of Paddle's sum on a CPU."""
    return paddle.matmul(paddle.ones([x.shape[0]], dtype=x.dtype), x)


class _Bias(PyLayer):
    """A sum whose gradient for the bias is a product; Paddle's costs more than the linear map before it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        return x + bias

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return gradient, column_sums(gradient.reshape([-1, gradient.shape[-1]]))
