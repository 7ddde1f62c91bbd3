"""What happens around the steps of ``paddle.Model.fit``: counting, reporting, evaluating, saving."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import paddle
from paddle import io

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.task import Display
from paddle_dialog.training.batches import TrainingBatches
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
    metric: Any  # the training perplexity
    clip: GlobalNormClip
    sinks: Sequence[Sink]


class Counter(paddle.callbacks.Callback):
    """Seeds every step and counts steps, batches and epochs; the first of the callbacks.

    With the random numbers of a step depending on seed and step alone, a resumed run repeats them without
    storing a generator's state, and whatever else draws numbers in between changes nothing.
    """

    def __init__(self, context: RunContext) -> None:
        super().__init__()
        self.context = context

    def on_train_batch_begin(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Seeds dropout."""
        paddle.seed((self.context.seed * 1_000_003 + self.context.progress.step + 1) % 2**31)

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Counts, and ends the run where ``max_steps`` says so."""
        progress = self.context.progress
        progress.step += 1
        progress.batch += 1
        if progress.step >= self.context.total_steps:
            self.context.batches.stop = True

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Turns to the next epoch unless the run was stopped inside this one."""
        progress = self.context.progress
        if progress.batch >= len(self.context.batches):
            progress.epoch += 1
            progress.batch = 0
        if self.context.batches.stop:
            self.model.stop_training = True


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
        self._steps += 1
        progress = self.context.progress
        if progress.step % self.context.config.log_every == 0 or self.context.batches.stop:
            self._report(logs or {})

    def stop_clock(self) -> None:
        """Counts the time until now as training; what follows, up to ``resume_clock``, is not."""
        self.context.progress.seconds += time.perf_counter() - self._since

    def resume_clock(self) -> None:
        """Begins the averages anew."""
        self._restart()

    def _report(self, logs: dict[str, Any]) -> None:
        context = self.context
        elapsed = time.perf_counter() - self._since
        context.progress.seconds += elapsed
        batches, progress = context.batches, context.progress
        norm = context.clip.last_norm
        report = StepReport(
            step=progress.step,
            total_steps=context.total_steps,
            epoch=progress.epoch + progress.batch / len(batches),
            loss=float(logs["loss"][0]),
            perplexity=float(context.metric.accumulate()),
            learning_rate=float(self.model._optimizer.get_lr()),
            gradient_norm=math.nan if norm is None else float(norm),
            tokens_per_second=batches.tokens / elapsed,
            reader_share=batches.reader_seconds / elapsed,
            seconds_left=elapsed / self._steps * (context.total_steps - progress.step),
        )
        for sink in context.sinks:
            sink.step(report)
        context.metric.reset()
        self._restart()

    def _restart(self) -> None:
        self._since = time.perf_counter()
        self._steps = 0
        self.context.batches.tokens = 0
        self.context.batches.reader_seconds = 0.0


class DevEvaluation(paddle.callbacks.Callback):
    """Measures the dev perplexity, keeps the best model, and stops early.

    Args:
        context: the run.
        dev: the dev batches.
        display: decodes a few examples with the network as it is.
        save_best: called when the perplexity is the lowest so far.
        reporter: whose clock is restarted afterwards.
    """

    def __init__(
        self,
        context: RunContext,
        dev: io.DataLoader,
        display: Callable[[], Display],
        save_best: Callable[[], None],
        reporter: Reporter,
    ) -> None:
        super().__init__()
        self.context = context
        self._dev = dev
        self._display = display
        self._save_best = save_best
        self._reporter = reporter

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluates every ``eval_every`` steps and after the last one."""
        every, progress = self.context.config.eval_every, self.context.progress
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
        context.metric.reset()  # fit and evaluate share it, and evaluate resets it only afterwards
        result = self.model.evaluate(self._dev, verbose=0)
        perplexity = float(result[context.metric.name()])
        best = perplexity < progress.best_perplexity
        progress.curve.append((progress.step, perplexity))
        if best:
            progress.best_perplexity, progress.best_step = perplexity, progress.step
            progress.evaluations_without_gain = 0
            self._save_best()
        else:
            progress.evaluations_without_gain += 1
        self.model.network.eval()
        evaluation = Evaluation(progress.step, perplexity, best, self._display())
        for sink in context.sinks:
            sink.evaluation(evaluation)
        patience = context.config.patience
        if patience is not None and progress.evaluations_without_gain >= patience:
            context.batches.stop = True
            self.model.stop_training = True
        self._reporter.resume_clock()


class Saver(paddle.callbacks.Callback):
    """Saves the checkpoint every ``save_every`` steps; the last of the callbacks."""

    def __init__(self, context: RunContext, save_last: Callable[[], None]) -> None:
        super().__init__()
        self.context = context
        self._save_last = save_last

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Saves when it is time."""
        if self.context.progress.step % self.context.config.save_every == 0:
            self._save_last()
