"""Layer normalisation (Ba et al. 2016) with a backward pass made of products, a third of Paddle's time on a CPU."""

from __future__ import annotations

from typing import Any

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn
from paddle.autograd import PyLayer


class LayerNorm(nn.LayerNorm):
    """`nn.LayerNorm` over the last axis, with `NormWithOwnGradient` where a CPU trains.

    Args:
        width: size D of the last axis.
        epsilon: added to the variance.
    """

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__(width, epsilon)
        self._epsilon_added = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Normalise [..., D]."""
        trains = paddle.is_grad_enabled() and not (
            x.stop_gradient or self.weight.stop_gradient or self.bias.stop_gradient
        )
        if trains and x.place.is_cpu_place() and x.dtype == paddle.float32:
            return NormWithOwnGradient.apply(x, self.weight, self.bias, self._epsilon_added)
        return super().forward(x)


class NormWithOwnGradient(PyLayer):
    """Paddle's layer norm forward; backward its gradient, written out.

    With c = x - mean, r = 1 / sqrt(variance + ε) and g the gradient of the result, that of x is
    r · (g·γ - mean(g·γ)) - c · r³ · mean(g·γ·c), means over D. Sums are written as products
    with vectors, and operands are expanded before they are multiplied: Paddle is several times faster this way.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        """Normalise `x` [..., D] by `weight` γ [D] and `bias` [D]."""
        ctx.save_for_backward(x, weight)
        ctx.epsilon = epsilon
        return F.layer_norm(x, weight.shape, weight, bias, epsilon)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of `x`, `weight` and `bias` from that of the result [..., D]."""
        x, weight = ctx.saved_tensor()
        shape, width = x.shape, weight.shape[0]
        x, g = x.reshape([-1, width]), gradient.reshape([-1, width])  # [N, D]
        mean = paddle.full([width, 1], 1.0 / width)
        centred = x - paddle.matmul(x, mean).expand(x.shape)  # [N, D]
        r = paddle.rsqrt(paddle.matmul(centred * centred, mean) + ctx.epsilon)  # [N, 1]
        product = g * centred  # [N, D]
        scaled = weight.unsqueeze(1) / width  # [D, 1]
        offset = paddle.matmul(g, scaled) * r  # [N, 1]
        slope = paddle.matmul(product, scaled) * r**3  # [N, 1]
        factor = paddle.matmul(r, weight.unsqueeze(0))  # [N, D]
        of_x = g * factor - offset.expand(x.shape) - centred * slope.expand(x.shape)  # [N, D]
        of_weight = paddle.matmul(r, product, transpose_x=True)  # [1, D]
        of_bias = paddle.matmul(paddle.ones_like(r), g, transpose_x=True)  # [1, D]
        return of_x.reshape(shape), of_weight.squeeze(0), of_bias.squeeze(0)
