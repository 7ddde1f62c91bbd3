"""Evaluation on the dev set: the objective, the best models, a few examples."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from paddle import io

from paddle_dialog.task import Display
from paddle_dialog.training.best_models import BestModels
from paddle_dialog.training.distributed import is_main, meet
from paddle_dialog.training.events import Evaluation
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.reporting import Reporter
from paddle_dialog.training.training_model import TrainingModel


@dataclass
class DevEvaluation:
    """Measures the objective on the dev set, with the averaged weights where there are any."""

    model: TrainingModel
    dev: io.DataLoader  # the batches of this process
    progress: Progress
    best: BestModels
    display: Callable[[], Display]  # shows the current network at work on a few examples
    reporter: Reporter  # its sinks get the result

    def run(self) -> None:
        """Evaluate, unless this step has been evaluated."""
        curve = self.progress.curve
        if curve and curve[-1][0] == self.progress.step:
            return
        average = self.model.average
        with self.reporter.paused():
            self.model.skips.settle()
            with nullcontext() if average is None else average.applied():
                evaluation = self._measure()
            for sink in self.reporter.sinks:
                sink.evaluation(evaluation)
            meet()

    def _measure(self) -> Evaluation:
        model, progress = self.model, self.progress
        model.dev_meter.reset()
        model.evaluate(self.dev, verbose=0)
        meet()
        _, figure = model.dev_meter.read()
        progress.curve.append((progress.step, figure))
        best = self.best.consider(figure)
        progress.evaluations_without_gain = 0 if best else progress.evaluations_without_gain + 1
        model.network.eval()
        return Evaluation(progress.step, figure, best, self.display() if is_main() else Display())
