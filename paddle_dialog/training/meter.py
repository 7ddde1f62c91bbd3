"""Sums over batches, kept on the device."""

from __future__ import annotations

import math
from collections.abc import Sequence

import paddle
from paddle import Tensor

from paddle_dialog.objective import Objective
from paddle_dialog.training.distributed import num_ranks, sum_over_ranks


class Meter:
    """The last loss and the objective since the last `reset`.

    Args:
        objective: the figure to measure.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self.reset()

    def reset(self) -> None:
        """Start over."""
        self._loss: Tensor | None = None
        self._sums: Tensor | float = 0.0  # [K]

    @paddle.no_grad()
    def add(self, loss: Tensor, sums: Sequence[Tensor], finite_only: bool = False) -> None:
        """Add a batch.

        Args:
            loss: [].
            sums: K scalars, see `Objective.sums`.
            finite_only: a batch whose sums are not finite adds nothing.
        """
        self._loss = loss.detach()
        added = paddle.stack(list(sums)).astype("float64")  # [K]
        if finite_only:
            added = paddle.where(paddle.isfinite(added).all(), added, paddle.zeros_like(added))
        self._sums = added + self._sums

    def read(self) -> tuple[float, float]:
        """Return the loss of the last batch, and the objective, over all processes; NaN where there was no batch."""
        if self._loss is None:
            return math.nan, math.nan
        assert isinstance(self._sums, Tensor)
        loss, *sums = sum_over_ranks([float(self._loss), *self._sums.numpy().tolist()])
        return loss / num_ranks(), self._objective.figure(sums)
