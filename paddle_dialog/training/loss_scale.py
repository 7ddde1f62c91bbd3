"""Loss scaling, which keeps the small gradients of float16 from vanishing."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_dialog.training.progress import Progress


class LossScale:
    """A factor on the loss that halves at an overflow and doubles after many steps without one.

    Micikevicius et al. 2018, "Mixed Precision Training", sections 3.2 and 4. `paddle.amp.GradScaler` does the
    same but reads a flag back from the device at each step, prints to stdout and does nothing on a CPU; this one
    stays on the device. All factors are powers of two, so scaling does not round.

    Args:
        progress: holds the state that a resumed run continues with.
        growth_interval: steps without overflow after which the factor doubles.
    """

    def __init__(self, progress: Progress, growth_interval: int = 2000) -> None:
        self.value: Tensor = paddle.to_tensor(progress.loss_scale, dtype="float32")  # []
        self._finite_steps: Tensor = paddle.to_tensor(progress.steps_since_overflow, dtype="int64")  # []
        self._growth_interval = growth_interval

    @paddle.no_grad()
    def update(self, finite: Tensor) -> None:
        """Adapt the factor to a step's outcome, a boolean []."""
        steps = paddle.where(finite, self._finite_steps + 1, paddle.zeros_like(self._finite_steps))
        grows = steps >= self._growth_interval
        self._finite_steps = paddle.where(grows, paddle.zeros_like(steps), steps)
        kept = paddle.where(grows, self.value * 2.0, self.value)
        self.value = paddle.where(finite, kept, self.value * 0.5)

    def store(self, progress: Progress) -> None:
        """Write the state into the run's counters."""
        progress.loss_scale = float(self.value)
        progress.steps_since_overflow = int(self._finite_steps)
