"""Reports on the steps of a run and their speed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from paddle_dialog.training.batches import TrainingBatches
from paddle_dialog.training.distributed import sum_over_ranks
from paddle_dialog.training.events import Sink, StepReport
from paddle_dialog.training.plan import Plan
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.training_model import TrainingModel


@dataclass
class Reporter:
    """Reports the averages since the last report to the sinks, and counts the seconds of training."""

    plan: Plan
    progress: Progress
    batches: TrainingBatches
    model: TrainingModel
    sinks: Sequence[Sink]

    def __post_init__(self) -> None:
        self._restart()

    def report(self) -> None:
        """Report the steps since the last report."""
        plan, progress, model = self.plan, self.progress, self.model
        model.skips.settle()
        loss, figure = model.meter.read()
        elapsed = self._count_seconds()
        norm = model.clip.last_norm
        report = StepReport(
            step=progress.step,
            total_steps=plan.total_steps,
            epoch=progress.epoch + progress.batch / plan.batches_per_epoch,
            loss=loss,
            figure=figure,
            learning_rate=float(model.optimizer.get_lr()),
            gradient_norm=math.nan if norm is None else float(norm),
            units_per_second=sum_over_ranks([self.batches.units])[0] / elapsed,
            reader_share=self.batches.reader_seconds / elapsed,
            seconds_left=elapsed / (progress.step - self._first) * (plan.total_steps - progress.step),
            skipped=progress.skipped,
        )
        for sink in self.sinks:
            sink.step(report)
        model.meter.reset()
        self._restart()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of a `with` block from the training time; restart the averages after it."""
        self._count_seconds()
        yield
        self._restart()

    def _count_seconds(self) -> float:
        elapsed = time.perf_counter() - self._since
        self.progress.seconds += elapsed
        return elapsed

    def _restart(self) -> None:
        self._since = time.perf_counter()
        self._first = self.progress.step
        self.batches.units = 0
        self.batches.reader_seconds = 0.0
