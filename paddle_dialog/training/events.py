"""The reports of a run, and the interface of their sinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from paddle_dialog.task import Display


@dataclass(frozen=True)
class StepReport:
    """The averages since the last report.

    Args:
        step: optimiser steps done.
        total_steps: steps of the whole run.
        epoch: epochs done, with fraction.
        loss: training loss of the last batch.
        figure: the objective on the training batches since the last report, with dropout.
        learning_rate: of the next step.
        gradient_norm: of the last step, before clipping.
        units_per_second: speed in the task's units: examples, or real target tokens.
        reader_share: share of the time spent waiting for batches, 0 to 1.
        seconds_left: estimate for the rest of the run.
        skipped: steps of the whole run whose loss or gradient was not finite.
    """

    step: int
    total_steps: int
    epoch: float
    loss: float
    figure: float
    learning_rate: float
    gradient_norm: float
    units_per_second: float
    reader_share: float
    seconds_left: float
    skipped: int = 0


@dataclass(frozen=True)
class Evaluation:
    """The result of one evaluation on the dev set.

    Args:
        step: optimiser steps done.
        figure: the objective on the dev set.
        best: whether it is the best so far.
        display: the model at work on a few examples.
    """

    step: int
    figure: float
    best: bool
    display: Display


class Sink(Protocol):
    """A place where reports go."""

    def step(self, report: StepReport) -> None:
        """Take a report of the training steps."""

    def evaluation(self, evaluation: Evaluation) -> None:
        """Take the result of a dev evaluation."""
