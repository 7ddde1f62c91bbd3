"""Optimiser and learning-rate schedule from the settings, and Muon.

Muon is momentum whose update of a matrix is orthogonalised, so that all its directions are learned alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.errors import UserError

# Of x ↦ a·x + b·x³ + c·x⁵, which takes singular values near 1 when iterated (Jordan et al. 2024, "Muon").
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
_MOMENTUM = 0.95
_ADAM_RMS = 0.2  # root mean square of Adam's usual update, so that one learning rate and decay suit both


def learning_rate_factor(config: TrainingConfig, total_steps: int, width: int) -> Callable[[int], float]:
    """Return the factor of `config.learning_rate` as a function of the step, from 0.

    Args:
        config: names the schedule and its warm-up; a linear warm-up precedes `constant` and `cosine`.
        total_steps: steps of the whole run, in whose last one `cosine` reaches `config.final_rate`.
        width: model width d of `noam`: d^-0.5 · min(step^-0.5, step · warmup^-1.5) (Vaswani et al. 2017,
            equation 3).
    """
    warmup = config.warmup_steps

    def factor(step: int) -> float:
        current = step + 1
        if config.schedule == "noam":
            return float(width**-0.5 * min(current**-0.5, current * warmup**-1.5))
        if step < warmup:
            return current / warmup
        if config.schedule == "constant":
            return 1.0
        done = min(1.0, (step - warmup) / max(1, total_steps - 1 - warmup))
        return config.final_rate + (1.0 - config.final_rate) * 0.5 * (1.0 + math.cos(math.pi * done))

    return factor


def build_optimizer(
    config: TrainingConfig, network: nn.Layer, total_steps: int, width: int
) -> tuple[paddle.optimizer.Optimizer, paddle.optimizer.lr.LRScheduler]:
    """Make the optimiser and its schedule over a network's trainable parameters.

    Weight decay does not apply to vectors (biases and layer norms), as usual.
    """
    factor = learning_rate_factor(config, total_steps, width)
    schedule = paddle.optimizer.lr.LambdaDecay(config.learning_rate, factor)
    parameters = [parameter for parameter in network.parameters() if not parameter.stop_gradient]
    common = {
        "learning_rate": schedule,
        "parameters": parameters,
        "beta2": config.beta2,
        "epsilon": config.epsilon,
    }
    if config.optimizer == "adam":
        return paddle.optimizer.Adam(**common), schedule
    decayed = {parameter.name for parameter in parameters if parameter.ndim > 1}
    common |= {"weight_decay": config.weight_decay, "apply_decay_param_fun": decayed.__contains__}
    if config.optimizer == "muon":
        hidden = hidden_matrices(network)
        if not hidden:
            raise UserError("training.optimizer: muon finds no matrix between hidden layers here; take adamw")
        return Muon(hidden=hidden, **common), schedule
    return paddle.optimizer.AdamW(**common), schedule


def orthogonalised(matrix: Tensor) -> Tensor:
    """Return nearly the orthogonal factor U Vᵀ of a matrix U S Vᵀ by Newton-Schulz steps.

    Args:
        matrix: [M, N].

    Returns:
        [M, N], with singular values between about 0.7 and 1.2.
    """
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.t()
    x = x / (paddle.linalg.norm(x) + 1e-7)
    # Every step multiplies x by a polynomial of its Gram matrix, which changes with it. So the steps are products of
    # the shorter side alone, and x itself is multiplied once.
    gram, identity = paddle.matmul(x, x, transpose_y=True), paddle.eye(x.shape[0], dtype=x.dtype)
    step = factor = _A * identity + _B * gram + _C * paddle.matmul(gram, gram)
    for _ in range(_ITERATIONS - 1):
        gram = paddle.matmul(paddle.matmul(step, gram), step)
        step = _A * identity + _B * gram + _C * paddle.matmul(gram, gram)
        factor = paddle.matmul(step, factor)
    x = paddle.matmul(factor, x)
    return x if wide else x.t()


def hidden_matrices(network: nn.Layer) -> set[str]:
    """Return the names of the matrices between hidden layers.

    No tables (of tokens, or in a layer called `positions`), no output layers, whose size is that of a vocabulary, and
    nothing with a side of 1.
    """
    kept = {parameter.name for parameter in network.parameters() if parameter.ndim == 2}
    vocabularies = {1}
    for name, layer in network.named_sublayers():
        if name.rpartition(".")[2] == "positions":
            kept -= {parameter.name for parameter in layer.parameters()}
        elif isinstance(layer, nn.Embedding):
            kept.discard(layer.weight.name)
            vocabularies.add(layer.weight.shape[0])
    return {
        parameter.name
        for parameter in network.parameters()
        if parameter.name in kept and not vocabularies & {*parameter.shape}
    }


class Muon(paddle.optimizer.AdamW):
    """Muon for the hidden matrices of a network and AdamW for all other parameters.

    An update is the orthogonalised Nesterov momentum, scaled to the size of Adam's by 0.2 · sqrt(max(M, N))
    (Liu et al. 2025, "Muon is Scalable for LLM Training", equation 4).

    Args:
        hidden: names of the parameters that Muon takes.
        settings: of `paddle.optimizer.AdamW`.
    """

    def __init__(self, hidden: Collection[str], **settings: Any) -> None:
        super().__init__(**settings)
        self._hidden = frozenset(hidden)

    def _append_optimize_op(self, block: Any, param_and_grad: Any) -> Any:
        parameter, gradient = param_and_grad
        if parameter.name not in self._hidden:
            return super()._append_optimize_op(block, param_and_grad)
        with paddle.no_grad():
            mean = self._get_accumulator_master(self._moment1_acc_str, parameter)
            paddle.assign(mean * _MOMENTUM + gradient * (1.0 - _MOMENTUM), mean)
            update = orthogonalised(mean * _MOMENTUM + gradient * (1.0 - _MOMENTUM))
            rate = self._create_param_lr(param_and_grad)
            decay = 1.0 - rate * self._weight_decay
            size = _ADAM_RMS * max(parameter.shape) ** 0.5
            paddle.assign(parameter * decay - update * (rate * size), parameter)
        return None


@paddle.no_grad()
def clip_gradients(parameters: Sequence[Tensor], largest: float | None) -> float:
    """Scale all gradients by min(1, largest / norm) (Pascanu et al. 2013, algorithm 1), and return the norm.

    It takes a sixth of the time of `paddle.nn.utils.clip_grad_norm_`, which makes up 6 % of a step on a CPU.

    Args:
        largest: global norm; None does not scale.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    squares = [paddle.square(gradient.astype("float32")).sum() for gradient in gradients]
    norm = float(paddle.sqrt(paddle.add_n(squares)))
    if largest is not None and norm > largest:
        for gradient in gradients:
            gradient.scale_(largest / norm)
    return norm
