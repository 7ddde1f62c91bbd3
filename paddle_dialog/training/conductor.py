"""Conducts `paddle.Model.fit`: all that happens around a step, in one order and in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import paddle

from paddle_dialog.training.distributed import any_rank, meet, num_ranks, rank
from paddle_dialog.training.observer import Observer
from paddle_dialog.training.plan import Plan, Stop
from paddle_dialog.training.progress import Progress


@dataclass(eq=False)
class Conductor(paddle.callbacks.LRScheduler):
    """Leads `fit` through a run; the step itself is `TrainingModel.train_batch`.

    It is an `LRScheduler` because `fit` would otherwise add one that advances the rate after each batch.
    """

    plan: Plan
    progress: Progress  # updated here
    seed: int
    asked: Callable[[], bool]  # whether this process was asked to stop
    observer: Observer
    save: Callable[[], None]
    stop: Stop | None = None  # why the run stops; None while it goes on

    def __post_init__(self) -> None:
        super().__init__()

    def on_train_batch_begin(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Seed dropout by the position of the step's first batch, in each process differently.

        So a resumed run repeats the random numbers without a stored generator state, whatever else draws numbers in
        between.
        """
        position = self.progress.epoch * self.plan.batches_per_epoch + self.progress.batch + 1
        paddle.seed((self.seed * 1_000_003 + position + rank() * 500_000_003) % 2**31)

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Count the step; then report, evaluate, save and stop, each when it is due."""
        plan, progress = self.plan, self.progress
        progress.batch = min(progress.batch + plan.settings.accumulate, plan.batches_per_epoch)
        progress.step += 1
        self.stop = plan.completion(progress) or self._asked_anywhere()  # a finished run is not interrupted
        if plan.reports_after(progress.step) or self.stop:
            self.observer.report()
        if plan.evaluates_after(progress.step):
            self.observer.evaluate()
            self.stop = self.stop or plan.completion(progress)
        if plan.saves_after(progress.step):
            self.save()
            meet()
        if self.stop:
            self.model.num_iters = 1  # `fit` leaves the epoch when its count of remaining batches falls to 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Move on to the next epoch, unless the run stops inside this one, and evaluate if that is due."""
        plan, progress = self.plan, self.progress
        if progress.batch >= plan.batches_per_epoch:
            progress.epoch, progress.batch = progress.epoch + 1, 0
            if plan.evaluates_after_epoch(progress.step):
                self.observer.evaluate()
                self.stop = self.stop or plan.completion(progress)
        self.model.stop_training = self.stop is not None

    def _asked_anywhere(self) -> Stop | None:
        """Return why to stop if any process was asked to; all leave at the same step, or some would wait forever.

        On GPUs they ask each other only now and then, because the answer stalls the queue.
        """
        every = 1 if num_ranks() == 1 or paddle.get_device() == "cpu" else 20
        return Stop.ASKED if self.progress.step % every == 0 and any_rank(self.asked()) else None
