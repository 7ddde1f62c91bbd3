"""What happens around the steps of ``paddle.Model.fit``: counting, reporting, evaluating, saving."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import paddle
from paddle import io

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.task import Display
from paddle_dialog.training.average import WeightAverage
from paddle_dialog.training.batches import TrainingBatches
from paddle_dialog.training.distributed import (
    any_rank,
    is_main,
    meet,
    num_ranks,
    rank,
    sum_over_ranks,
)
from paddle_dialog.training.events import Evaluation, Sink, StepReport
from paddle_dialog.training.optimizer import GlobalNormClip
from paddle_dialog.training.progress import Progress


@dataclass
class RunContext:
    """What the callbacks of one run share."""

    config: TrainingConfig
    seed: int
    progress: Progress
    batches: TrainingBatches
    total_steps: int
    clip: GlobalNormClip
    sinks: Sequence[Sink]
    average: WeightAverage | None = None

    @property
    def at_step_end(self) -> bool:
        """Whether the last batch was the last one of an optimiser step."""
        return self.batches.ends_step(self.progress.batch)


class Counter(paddle.callbacks.Callback):
    """Seeds every batch and counts steps, batches and epochs; the first of the callbacks.

    With the random numbers of a batch depending on seed and position alone, a resumed run repeats them without
    storing a generator's state, and whatever else draws numbers in between changes nothing.
    """

    def __init__(self, context: RunContext) -> None:
        super().__init__()
        self.context = context

    @property
    def _steps_between_checks(self) -> int:
        """Steps after which the processes ask each other for signals; on a GPU the answer stalls the queue."""
        return 1 if num_ranks() == 1 or paddle.get_device() == "cpu" else 20

    def on_train_batch_begin(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Seeds dropout, in each process differently."""
        progress = self.context.progress
        position = progress.epoch * len(self.context.batches) + progress.batch + 1
        paddle.seed((self.context.seed * 1_000_003 + position + rank() * 500_000_003) % 2**31)

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Counts, and ends the run where ``max_steps`` says so or a process was asked to stop."""
        progress, batches = self.context.progress, self.context.batches
        progress.batch += 1
        if self.context.at_step_end:
            progress.step += 1
            if progress.step % self._steps_between_checks == 0:
                # All leave at the same step, or the others would wait for one that has gone.
                batches.interrupted = any_rank(batches.stop_requested)
        if batches.interrupted or progress.step >= self.context.total_steps:
            batches.stop = True

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Turns to the next epoch unless the run was stopped inside this one."""
        progress = self.context.progress
        if progress.batch >= len(self.context.batches):
            progress.epoch += 1
            progress.batch = 0
        if self.context.batches.stop:
            self.model.stop_training = True


class Schedule(paddle.callbacks.LRScheduler):
    """Moves the learning rate on after each optimiser step; one of its kind keeps ``fit`` from adding its own."""

    def __init__(self, context: RunContext) -> None:
        super().__init__(by_step=True)
        self.context = context

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Leaves out the batches in between."""
        if self.context.at_step_end:
            super().on_train_batch_end(step, logs)


class Reporter(paddle.callbacks.Callback):
    """Reports the averages of every ``log_every`` steps to the sinks."""

    def __init__(self, context: RunContext) -> None:
        super().__init__()
        self.context = context
        self._since = time.perf_counter()
        self._steps = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts the clock."""
        self._restart()

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Reports when it is time; time spent in evaluations is not training time."""
        if not self.context.at_step_end:
            return
        self._steps += 1
        progress = self.context.progress
        if progress.step % self.context.config.log_every == 0 or self.context.batches.stop:
            self._report()

    def stop_clock(self) -> None:
        """Counts the time until now as training; what follows, up to ``resume_clock``, is not."""
        self.context.progress.seconds += time.perf_counter() - self._since

    def resume_clock(self) -> None:
        """Begins the averages anew."""
        self._restart()

    def _report(self) -> None:
        context = self.context
        self.model.skips.settle()
        loss, figure = self.model.meter.read()
        elapsed = time.perf_counter() - self._since
        context.progress.seconds += elapsed
        batches, progress = context.batches, context.progress
        norm = context.clip.last_norm
        report = StepReport(
            step=progress.step,
            total_steps=context.total_steps,
            epoch=progress.epoch + progress.batch / len(batches),
            loss=loss,
            figure=figure,
            learning_rate=float(self.model._optimizer.get_lr()),
            gradient_norm=math.nan if norm is None else float(norm),
            units_per_second=sum_over_ranks([batches.units])[0] / elapsed,
            reader_share=batches.reader_seconds / elapsed,
            seconds_left=elapsed / self._steps * (context.total_steps - progress.step),
            skipped=progress.skipped,
        )
        for sink in context.sinks:
            sink.step(report)
        self.model.meter.reset()
        self._restart()

    def _restart(self) -> None:
        self._since = time.perf_counter()
        self._steps = 0
        self.context.batches.units = 0
        self.context.batches.reader_seconds = 0.0


class DevEvaluation(paddle.callbacks.Callback):
    """Measures the objective on the dev set, keeps the best models, and stops early.

    Args:
        context: the run.
        dev: the dev batches.
        display: decodes a few examples with the network as it is.
        keep: saves the network as it is where the figure is one of the best; says whether it is the best.
        reporter: whose clock is restarted afterwards.
    """

    def __init__(
        self,
        context: RunContext,
        dev: io.DataLoader,
        display: Callable[[], Display],
        keep: Callable[[float], bool],
        reporter: Reporter,
    ) -> None:
        super().__init__()
        self.context = context
        self._dev = dev
        self._display = display
        self._keep = keep
        self._reporter = reporter

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluates every ``eval_every`` steps and after the last one."""
        every, progress = self.context.config.eval_every, self.context.progress
        if not self.context.at_step_end:
            return
        if (every and progress.step % every == 0) or progress.step >= self.context.total_steps:
            self._evaluate()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluates after a whole epoch where ``eval_every`` is 0."""
        progress = self.context.progress
        whole = progress.batch == 0
        if self.context.config.eval_every == 0 and whole and progress.step < self.context.total_steps:
            self._evaluate()

    def _evaluate(self) -> None:
        context, progress = self.context, self.context.progress
        if progress.curve and progress.curve[-1][0] == progress.step:
            return
        self._reporter.stop_clock()
        self.model.skips.settle()
        with nullcontext() if context.average is None else context.average.applied():
            evaluation = self._measure()
        for sink in context.sinks:
            sink.evaluation(evaluation)
        patience = context.config.patience
        if patience is not None and progress.evaluations_without_gain >= patience:
            context.batches.stop = True
            self.model.stop_training = True
        meet()
        self._reporter.resume_clock()

    def _measure(self) -> Evaluation:
        """Evaluates the weights as they are now, and keeps them where they are good."""
        progress = self.context.progress
        self.model.dev_meter.reset()
        self.model.evaluate(self._dev, verbose=0)
        meet()
        _, figure = self.model.dev_meter.read()
        progress.curve.append((progress.step, figure))
        best = self._keep(figure)
        progress.evaluations_without_gain = 0 if best else progress.evaluations_without_gain + 1
        self.model.network.eval()
        return Evaluation(progress.step, figure, best, self._display() if is_main() else Display())


class Saver(paddle.callbacks.Callback):
    """Saves the checkpoint every ``save_every`` steps; the last of the callbacks."""

    def __init__(self, context: RunContext, save_last: Callable[[], None]) -> None:
        super().__init__()
        self.context = context
        self._save_last = save_last

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Saves when it is time."""
        context = self.context
        if context.at_step_end and context.progress.step % context.config.save_every == 0:
            self._save_last()
            meet()
