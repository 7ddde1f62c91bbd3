"""The progress of a run: all that a resumed run needs beside weights and optimiser."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from paddle_dialog.errors import UserError


@dataclass
class Progress:
    """The counters of a run.

    `epoch` and `batch` say how many epochs, and batches of the current one, are done; `step` counts
    optimiser steps, skipped ones included. Figures are the dev set's, of the objective that `objective` names.
    `processes` and `batch_size` say what a batch of the epoch was.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    seconds: float = 0.0
    best_figure: float | None = None
    best_step: int = 0
    evaluations_without_gain: int = 0
    finished: bool = False
    curve: list[tuple[int, float]] = field(default_factory=list)  # (step, figure)
    skipped: int = 0  # steps whose loss or gradient was not finite
    skipped_in_a_row: int = 0
    kept: list[tuple[float, int]] = field(default_factory=list)  # (figure, step) of the best-STEP folders
    loss_scale: float = 2.0**15
    steps_since_overflow: int = 0
    processes: int = 0  # 0 in a checkpoint of an earlier version
    batch_size: int = 0
    objective: str = ""

    def set_objective(self, name: str) -> None:
        """Set the objective that models are compared by.

        Raises:
            UserError: the run has compared its models by another one.
        """
        if self.objective not in ("", name):
            raise UserError(
                f"the run's models were compared by their {self.objective}, and this version compares them by "
                f"their {name}; begin the run anew"
            )
        self.objective = name

    def set_layout(self, processes: int, batch_size: int, streaming: bool) -> None:
        """Set the number of processes and the batch size of each, which a resumed run may not change freely.

        Streamed batches depend on both; otherwise n processes with batches of b see the same as one with n·b.

        Raises:
            UserError: the run's batches would differ from those counted here.
        """
        before, now = (self.processes, self.batch_size), (processes, batch_size)
        same = before == now if streaming else before[0] * before[1] == processes * batch_size
        if self.processes and not same:
            wanted = "both the same" if streaming else f"a product of {before[0] * before[1]}"
            raise UserError(
                f"the run was started with {before[0]} processes and data.batch_size {before[1]}, and this is "
                f"{processes} with {batch_size}; resume with {wanted}"
            )
        self.processes, self.batch_size = now

    def as_dict(self) -> dict[str, Any]:
        """Return the counters as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Progress:
        """Restore the counters of `as_dict`, also those of earlier versions, which had only perplexities."""
        values = dict(values)
        if "best_perplexity" in values:
            best = float(values.pop("best_perplexity"))
            values |= {"best_figure": best if math.isfinite(best) else None, "objective": "perplexity"}
        curve = [(int(step), float(figure)) for step, figure in values["curve"]]
        kept = [(float(figure), int(step)) for figure, step in values.get("kept", [])]
        return cls(**{**values, "curve": curve, "kept": kept})
