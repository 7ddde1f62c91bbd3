"""Reports on the steps of a run, and looks at the dev set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from paddle_dialog.task import Display
from paddle_dialog.training.batches import TrainingBatches
from paddle_dialog.training.best_models import BestModels
from paddle_dialog.training.distributed import is_main, meet, sum_over_ranks
from paddle_dialog.training.events import Evaluation, Sink, StepReport
from paddle_dialog.training.plan import Plan
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.training_model import TrainingModel


@dataclass
class Observer:
    """Measures how training goes, tells the sinks, and counts the seconds of training."""

    plan: Plan
    progress: Progress
    batches: TrainingBatches
    model: TrainingModel
    sinks: Sequence[Sink]
    dev: Callable[[], Iterable[Any]] | None  # the dev batches of this process, as arrays
    best: BestModels
    display: Callable[[], Display]  # shows the network, with its current weights, at work on a few examples

    def __post_init__(self) -> None:
        self._restart()

    def report(self) -> None:
        """Report the averages since the last report."""
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

    def evaluate(self) -> None:
        """Evaluate the averaged weights, or the weights themselves, unless this step has been evaluated."""
        curve = self.progress.curve
        if self.dev is None or (curve and curve[-1][0] == self.progress.step):
            return
        self._count_seconds()
        self.model.skips.settle()
        average = self.model.average
        with nullcontext() if average is None else average.applied():
            evaluation = self._measure()
        for sink in self.sinks:
            sink.evaluation(evaluation)
        meet()
        self._restart()  # the time of an evaluation is not training time

    def _measure(self) -> Evaluation:
        assert self.dev is not None
        model, progress = self.model, self.progress
        figure = model.measure(self.dev())
        progress.curve.append((progress.step, figure))
        best = self.best.consider(figure)
        progress.evaluations_without_gain = 0 if best else progress.evaluations_without_gain + 1
        return Evaluation(progress.step, figure, best, self.display() if is_main() else Display())

    def _count_seconds(self) -> float:
        elapsed = time.perf_counter() - self._since
        self.progress.seconds += elapsed
        return elapsed

    def _restart(self) -> None:
        self._since = time.perf_counter()
        self._first = self.progress.step
        self.batches.units = 0
        self.batches.reader_seconds = 0.0
