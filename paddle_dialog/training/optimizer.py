"""Optimiser, learning-rate schedule and gradient clipping from the settings."""

from __future__ import annotations

import math
from collections.abc import Callable

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.schema import TrainingConfig


def learning_rate_factor(config: TrainingConfig, total_steps: int, width: int) -> Callable[[int], float]:
    """The schedule as a function of the step, to be multiplied by ``config.learning_rate``.

    Args:
        config: names the schedule and its warm-up; a linear warm-up precedes ``constant`` and ``cosine``.
        total_steps: steps of the whole run, where ``cosine`` arrives at ``config.final_rate``.
        width: model width d of ``noam``: d^-0.5 · min(step^-0.5, step · warmup^-1.5) (Vaswani et al. 2017,
            equation 3).

    Returns:
        A function of the 0-based step.
    """
    warmup = config.warmup_steps

    def noam(step: int) -> float:
        current = step + 1
        return float(width**-0.5 * min(current**-0.5, current * warmup**-1.5))

    def constant(step: int) -> float:
        return min(1.0, (step + 1) / warmup) if warmup else 1.0

    def cosine(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        done = min(1.0, (step - warmup) / max(1, total_steps - warmup))
        return config.final_rate + (1.0 - config.final_rate) * 0.5 * (1.0 + math.cos(math.pi * done))

    return {"noam": noam, "constant": constant, "cosine": cosine}[config.schedule]


class GlobalNormClip(nn.ClipGradByGlobalNorm):
    """Clips gradients by their global norm and remembers the norm before clipping.

    ``last_norm`` stays a tensor, so that reading it costs a device synchronisation only where it is logged.

    Args:
        clip_norm: the largest norm let through; None only measures.
    """

    def __init__(self, clip_norm: float | None) -> None:
        super().__init__(math.inf if clip_norm is None else clip_norm)
        self.last_norm: Tensor | None = None

    @paddle.no_grad()
    def __call__(self, params_grads: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
        """Scales all gradients by min(1, clip_norm / norm) in place (Pascanu et al. 2013, algorithm 1)."""
        gradients = [gradient for _, gradient in params_grads if gradient is not None]
        squares = [paddle.square(gradient.flatten().astype("float32")).sum() for gradient in gradients]
        self.last_norm = paddle.sqrt(paddle.stack(squares).sum())
        if math.isinf(self.clip_norm):
            return params_grads
        scale = self.clip_norm / paddle.clip(self.last_norm, min=self.clip_norm)
        for gradient in gradients:
            gradient.multiply_(scale.astype(gradient.dtype))
        return params_grads


def build_optimizer(
    config: TrainingConfig, network: nn.Layer, total_steps: int, width: int
) -> tuple[paddle.optimizer.Optimizer, GlobalNormClip]:
    """Makes the optimiser with its schedule over a network's trainable parameters.

    Weight decay leaves out vectors (biases and layer norms), as is usual.

    Args:
        config: the training section.
        network: whose parameters are trained.
        total_steps: optimiser steps of the whole run.
        width: model width, for the noam schedule.

    Returns:
        The optimiser and its clip, which knows the last gradient norm.
    """
    factor = learning_rate_factor(config, total_steps, width)
    schedule = paddle.optimizer.lr.LambdaDecay(config.learning_rate, factor)
    clip = GlobalNormClip(config.clip_norm)
    parameters = [parameter for parameter in network.parameters() if not parameter.stop_gradient]
    common = {
        "learning_rate": schedule,
        "parameters": parameters,
        "beta1": config.beta1,
        "beta2": config.beta2,
        "epsilon": config.epsilon,
        "grad_clip": clip,
    }
    if config.optimizer == "adam":
        return paddle.optimizer.Adam(**common), clip
    decayed = {parameter.name for parameter in parameters if parameter.ndim > 1}
    return (
        paddle.optimizer.AdamW(
            **common, weight_decay=config.weight_decay, apply_decay_param_fun=decayed.__contains__
        ),
        clip,
    )
