"""The schedule of a run: what happens after which batch and step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.training.progress import Progress


class Stop(Enum):
    """Why a run stops."""

    FINISHED = "all steps are done"
    EARLY = "the objective did not get better for training.patience evaluations"
    ASKED = "asked to stop"


@dataclass(frozen=True)
class Plan:
    """The settings of a run in numbers of batches and steps.

    Args:
        settings: the section `training`.
        batches_per_epoch: of each process.
        steps_more: what a resumed run has done more (or, below 0, fewer) steps than its epochs have now, since they
            had another length before.
    """

    settings: TrainingConfig
    batches_per_epoch: int
    steps_more: int = 0

    @classmethod
    def going_on(cls, settings: TrainingConfig, batches_per_epoch: int, progress: Progress) -> Plan:
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

    def reports_after(self, step: int) -> bool:
        """Return whether a step is reported."""
        return step % self.settings.log_every == 0

    def evaluates_after(self, step: int) -> bool:
        """Return whether the dev set is evaluated after a step."""
        every = self.settings.eval_every
        return step >= self.total_steps or (every > 0 and step % every == 0)

    def evaluates_after_epoch(self, step: int) -> bool:
        """Return whether the dev set is evaluated after an epoch that ends with a step; not after the last step."""
        return self.settings.eval_every == 0 and step < self.total_steps

    def saves_after(self, step: int) -> bool:
        """Return whether a checkpoint follows a step."""
        return step % self.settings.save_every == 0

    def completion(self, progress: Progress) -> Stop | None:
        """Return why a run with this progress is complete, or None."""
        if progress.step >= self.total_steps:
            return Stop.FINISHED
        patience = self.settings.patience
        return Stop.EARLY if patience is not None and progress.evaluations_without_gain >= patience else None
