"""How far a run is, and what is due after a step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.errors import UserError
from paddle_dialog.metrics import Objective


@dataclass
class Progress:
    """The counters of a run: all that a resumed run needs, weights and optimiser aside.

    `epoch` and `batch` count epochs, and batches of the current one, that are done; `step` counts optimiser steps,
    skipped ones included. Figures are the dev set's, of the objective that `objective` names. `processes` and
    `batch_size` define what a batch of the epoch is.
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
    # State of `paddle.amp.GradScaler`, where it is used.
    scaler: dict[str, float] = field(default_factory=dict)
    processes: int = 0
    batch_size: int = 0
    objective: str = ""
    start: str = ""  # for the card: the weights that the run began with
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of each file of data, by its key

    def bind(self, objective: str, processes: int, batch_size: int) -> None:
        """Set what figures and batches mean, which a resumed run may not change."""
        if self.objective not in ("", objective):
            raise UserError(
                f"the run's models were compared by their {self.objective}, and this version compares them by "
                f"their {objective}; begin the run anew"
            )
        if self.processes and (self.processes, self.batch_size) != (processes, batch_size):
            raise UserError(
                f"the run was started with {self.processes} processes and data.batch_size {self.batch_size}, and "
                f"this is {processes} with {batch_size}; resume with what it was started with"
            )
        self.objective, self.processes, self.batch_size = objective, processes, batch_size

    def count_batches(self, count: int, per_epoch: int) -> None:
        """Count batches, and with its last one the epoch."""
        self.batch += count
        if self.batch >= per_epoch:
            self.epoch, self.batch = self.epoch + 1, 0

    def add_figure(self, figure: float, objective: Objective) -> bool:
        """Add a dev figure to the curve; return whether it is the best, which one that is not finite never is."""
        self.curve.append((self.step, figure))
        best = self.best_figure
        better = math.isfinite(figure) and (best is None or objective.rank(figure) < objective.rank(best))
        if better:
            self.best_figure, self.best_step = figure, self.step
        self.evaluations_without_gain = 0 if better else self.evaluations_without_gain + 1
        return better

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Progress:
        """Restore the counters of `dataclasses.asdict`."""
        if odd := values.keys() ^ {each.name for each in fields(cls)}:
            raise KeyError(min(odd))
        for each in fields(cls):
            value, default = values[each.name], getattr(cls(), each.name)
            kinds = (int, float) if isinstance(default, float) or default is None else type(default)
            if not isinstance(value, kinds) and not (value is default is None):
                raise TypeError(f"{each.name} is {value!r:.40}")
            is_wrong_count = isinstance(value, int) and not 0 <= value < 2**53
            if is_wrong_count or (isinstance(value, float) and not math.isfinite(value)):
                raise ValueError(f"{each.name} is {value!r:.40}")
        curve = [(int(step), float(figure)) for step, figure in values["curve"]]
        return cls(**{**values, "curve": curve})


class Stop(Enum):
    """Why a run stops."""

    FINISHED = "all steps are done"
    EARLY = "the objective did not get better in training.patience evaluations"
    REQUESTED = "a signal asked for it"


@dataclass(frozen=True)
class Plan:
    """The settings of a run in numbers of batches and steps.

    Args:
        batches_per_epoch: of each process.
        steps_more: by which a resumed run has done more (or, below 0, fewer) steps than its epochs have now, since
            they had another length before.
    """

    settings: TrainingConfig
    batches_per_epoch: int
    steps_more: int = 0

    @classmethod
    def resumed(cls, settings: TrainingConfig, batches_per_epoch: int, progress: Progress) -> Plan:
        """Return the plan of a run from its progress on."""
        steps_per_epoch = math.ceil(batches_per_epoch / settings.accumulate)
        usual = progress.epoch * steps_per_epoch + progress.batch // settings.accumulate
        return cls(settings, batches_per_epoch, progress.step - usual)

    @property
    def total_steps(self) -> int:
        """Steps of the whole run; the rest of an epoch's batches makes a step too."""
        whole = self.settings.epochs * math.ceil(self.batches_per_epoch / self.settings.accumulate)
        whole += self.steps_more
        return whole if self.settings.max_steps is None else min(whole, self.settings.max_steps)

    def evaluates_after(self, step: int, ends_epoch: bool) -> bool:
        """Return whether the dev set is evaluated after a step, which may be the last one of its epoch."""
        every = self.settings.eval_every
        return step >= self.total_steps or (step % every == 0 if every else ends_epoch)

    def completion(self, progress: Progress) -> Stop | None:
        """Return why a run with this progress is complete, or None."""
        if progress.step >= self.total_steps:
            return Stop.FINISHED
        patience = self.settings.patience
        return Stop.EARLY if patience is not None and progress.evaluations_without_gain >= patience else None
