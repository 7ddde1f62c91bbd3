"""Optimiser, learning-rate schedule and gradient clipping from the settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.errors import UserError
from paddle_dialog.training.finite import read_at_once
from paddle_dialog.training.loss_scale import LossScale
from paddle_dialog.training.muon import Muon, hidden_matrices


def learning_rate_factor(config: TrainingConfig, total_steps: int, width: int) -> Callable[[int], float]:
    """Return the schedule as a function of the step, to be multiplied by `config.learning_rate`.

    Args:
        config: names the schedule and its warm-up; a linear warm-up precedes `constant` and `cosine`.
        total_steps: steps of the whole run, at whose end `cosine` reaches `config.final_rate`.
        width: model width d of `noam`: d^-0.5 · min(step^-0.5, step · warmup^-1.5) (Vaswani et al. 2017,
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

    `last_norm`, and `finite`, which is whether it is finite, stay tensors, so that the device synchronises only when
    they are logged.

    Args:
        clip_norm: the largest norm; None only measures.
        loss_scale: what the loss was multiplied by; the gradients are divided by it.
    """

    def __init__(self, clip_norm: float | None, loss_scale: LossScale | None = None) -> None:
        super().__init__(math.inf if clip_norm is None else clip_norm)
        self.loss_scale = loss_scale
        self.last_norm: Tensor | None = None
        self.finite: Tensor | None = None

    @paddle.no_grad()
    def __call__(self, params_grads: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
        """Scale all gradients by min(1, clip_norm / norm) in place (Pascanu et al. 2013, algorithm 1)."""
        gradients = [gradient for _, gradient in params_grads if gradient is not None]
        squares = [paddle.square(gradient.flatten().astype("float32")).sum() for gradient in gradients]
        norm = paddle.sqrt(paddle.stack(squares).sum())
        self.last_norm = norm if self.loss_scale is None else norm / self.loss_scale.value
        self.finite = paddle.isfinite(self.last_norm)
        scale = None
        if not math.isinf(self.clip_norm):
            scale = self.clip_norm / paddle.clip(self.last_norm, min=self.clip_norm)
        if self.loss_scale is not None:
            scale = (1.0 if scale is None else scale) / self.loss_scale.value
        if scale is None or (read_at_once(scale) and float(scale) == 1.0):
            return params_grads
        for gradient in gradients:
            gradient.multiply_(scale.astype(gradient.dtype))
        return params_grads


class SkipNotFinite:
    """Makes an Adam keep weights and moments at a step whose gradient norm is not finite.

    On the CPU the step is not taken. On a GPU, where asking would stall the queue, it is taken and the old values are
    written back; only the powers of β, which correct the bias of the first steps, advance.
    """

    _grad_clip: GlobalNormClip

    def _create_optimization_pass(self, parameters_and_grads: Any, param_group_idx: int = 0) -> Any:
        finite = self._grad_clip.finite
        if finite is not None and read_at_once(finite) and not bool(finite):
            return []
        return super()._create_optimization_pass(parameters_and_grads, param_group_idx)  # type: ignore[misc]

    def _append_optimize_op(self, block: Any, param_and_grad: Any) -> Any:
        finite, parameter = self._grad_clip.finite, param_and_grad[0]
        if finite is None or read_at_once(finite):
            return super()._append_optimize_op(block, param_and_grad)  # type: ignore[misc]
        names = (self._moment1_acc_str, self._moment2_acc_str)  # type: ignore[attr-defined]
        written = [parameter, *(self._get_accumulator_master(name, parameter) for name in names)]  # type: ignore[attr-defined]
        before = [tensor.clone() for tensor in written]
        result = super()._append_optimize_op(block, param_and_grad)  # type: ignore[misc]
        for tensor, old in zip(written, before, strict=True):
            paddle.assign(paddle.where(finite, tensor, old), tensor)
        return result


class SkippingAdam(SkipNotFinite, paddle.optimizer.Adam):
    """Adam (Kingma and Ba 2015) that skips steps that are not finite."""


class SkippingAdamW(SkipNotFinite, paddle.optimizer.AdamW):
    """AdamW (Loshchilov and Hutter 2019) that skips steps that are not finite."""


class SkippingMuon(SkipNotFinite, Muon):
    """Muon that skips steps that are not finite."""


def build_optimizer(
    config: TrainingConfig,
    network: nn.Layer,
    total_steps: int,
    width: int,
    loss_scale: LossScale | None = None,
) -> tuple[paddle.optimizer.Optimizer, GlobalNormClip]:
    """Make the optimiser with its schedule over a network's trainable parameters.

    Weight decay does not apply to vectors (biases and layer norms), as usual.

    Args:
        config: the training section.
        network: whose parameters are trained.
        total_steps: optimiser steps of the whole run.
        width: model width, for the noam schedule.
        loss_scale: what the loss is multiplied by before the backward pass.

    Returns:
        The optimiser and its clip, which knows the last gradient norm.

    Raises:
        UserError: Muon is asked for where the network has no matrix for it.
    """
    factor = learning_rate_factor(config, total_steps, width)
    schedule = paddle.optimizer.lr.LambdaDecay(config.learning_rate, factor)
    clip = GlobalNormClip(config.clip_norm, loss_scale)
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
        return SkippingAdam(**common), clip
    decayed = {parameter.name for parameter in parameters if parameter.ndim > 1}
    common |= {"weight_decay": config.weight_decay, "apply_decay_param_fun": decayed.__contains__}
    if config.optimizer == "muon":
        hidden = hidden_matrices(network)
        if not hidden:
            raise UserError("training.optimizer: muon finds no matrix between hidden layers here; take adamw")
        return SkippingMuon(hidden=hidden, **common), clip
    return SkippingAdamW(**common), clip
