"""What a run tells: the log, curves for VisualDL, and the model card."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from paddle_dialog.config.loader import dump, flat
from paddle_dialog.figures.charts import draw_heat_map
from paddle_dialog.figures.folder import LOG_FILE, open_log
from paddle_dialog.objective import Objective
from paddle_dialog.task import Display, Task
from paddle_dialog.training.progress import Progress

logger = logging.getLogger("paddle_dialog")


@dataclass(frozen=True)
class StepReport:
    """The averages since the last report.

    Args:
        epoch: epochs done, with fraction.
        loss: training loss of the last batch.
        figure: the objective on the training batches since the last report, with dropout.
        learning_rate: of the last step.
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
        figure: the objective on the dev set.
        display: the model at work on a few examples.
    """

    step: int
    figure: float
    best: bool
    display: Display


class TextLog:
    """Writes reports to the log (stderr and `train.log`)."""

    def __init__(self, objective: Objective, unit: str) -> None:
        self._objective = objective
        self._unit = unit

    def step(self, report: StepReport) -> None:
        """Write one line for each report."""
        logger.info(
            "step %d/%d epoch %.2f loss %.4f %s %s lr %.2e grad norm %.2f %.0f %s/s reader %.1f%% eta %s%s",
            report.step,
            report.total_steps,
            report.epoch,
            report.loss,
            self._objective.name,
            self._objective.show(report.figure),
            report.learning_rate,
            report.gradient_norm,
            report.units_per_second,
            self._unit,
            100 * report.reader_share,
            timedelta(seconds=round(report.seconds_left)),
            f" skipped {report.skipped}" if report.skipped else "",
        )

    def evaluation(self, evaluation: Evaluation) -> None:
        """Write the dev figure, the task's own measures and the decoded examples."""
        mark = " (best so far)" if evaluation.best else ""
        others = "".join(f" {name} {value:.4f}" for name, value in evaluation.display.scalars.items())
        figure = f"{self._objective.name} {self._objective.show(evaluation.figure)}"
        logger.info("step %d dev %s%s%s", evaluation.step, figure, others, mark)
        for text in evaluation.display.texts:
            logger.info("  %s", text)

    def close(self) -> None:
        """Leave the log open, as the run goes on to write there."""


class LogFile(logging.FileHandler):
    """A log file whose failure, e.g. on a full disk, is reported once on stderr and ends nothing."""

    failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Report a failure once, instead of logging's traceback for every line."""
        error = sys.exc_info()[1]
        if not self.failed and isinstance(error, OSError):
            self.failed = True
            sys.stderr.write(f"{self.baseFilename} cannot be written ({error.strerror})\n")

    def close(self) -> None:
        """Close the file and drop what could not be written."""
        with contextlib.suppress(OSError):
            super().close()


def configure_logging(log_file: str | None = None) -> None:
    """Send the library's log to stderr and, where named, to a file that is appended to."""
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    formatter = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S")
    formatter.converter = time.localtime
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if log_file is not None:
        handlers.append(LogFile(log_file, encoding="utf-8", errors="backslashreplace"))
    for handler in handlers:
        handler.setFormatter(formatter)
        logger.addHandler(handler)
    # Other libraries put a handler on the root logger, which would show matplotlib's search for fonts.
    logging.getLogger("matplotlib").setLevel(logging.WARNING)


def close_log_file() -> None:
    """Close a run's log file, so that later messages of the process do not go there."""
    for handler in list(logger.handlers):
        if isinstance(handler, LogFile):
            logger.removeHandler(handler)
            handler.close()


class Curves:
    """Writes reports for `visualdl --logdir runs`; a resumed run goes on with the file of the run.

    A log that cannot be written must not end a training run: the first failure becomes a warning, and nothing
    more is written.

    Args:
        config: shown as hyper-parameters, with the objective on the dev set as their result.
    """

    def __init__(self, folder: Path, config: Any, objective: Objective, unit: str) -> None:
        self._objective = objective.name
        self._unit = unit
        self._writer: Any = None
        goes_on = (folder / LOG_FILE).exists()
        try:
            self._writer = open_log(folder)
        except (ImportError, OSError) as error:
            self._give_up(error)
        if not goes_on:
            self._write("add_hparams", _flat(config), [f"dev/{self._objective}"])

    def step(self, report: StepReport) -> None:
        """Add a point to each training curve."""
        curves = {
            "train/loss": report.loss,
            f"train/{self._objective}": report.figure,
            "train/learning_rate": report.learning_rate,
            "train/gradient_norm": report.gradient_norm,
            f"train/{self._unit}_per_second": report.units_per_second,
            "train/reader_share": report.reader_share,
            "train/skipped_steps": report.skipped,
        }
        for tag, value in curves.items():
            self._add_point(tag, value, report.step)

    def evaluation(self, evaluation: Evaluation) -> None:
        """Add the dev figure and the task's own measures, the examples and the heat maps."""
        step, display = evaluation.step, evaluation.display
        self._add_point(f"dev/{self._objective}", evaluation.figure, step)
        for name, value in display.scalars.items():
            self._add_point(f"dev/{name}", value, step)
        for index, text in enumerate(display.texts):
            self._write("add_text", f"examples/{index}", text, step)
        for name, weights in display.heat_maps.items() if self._writer is not None else ():
            image = draw_heat_map(weights, display.rows, display.columns, name)  # [height, width, 3]
            self._write("add_image", name, image, step)

    def _add_point(self, tag: str, value: float, step: int) -> None:
        if math.isfinite(value):  # a chart cannot show it; the text log does
            self._write("add_scalar", tag, value, step)

    def _write(self, method: str, *values: Any) -> None:
        if self._writer is None:
            return
        try:
            getattr(self._writer, method)(*values)
        except (OSError, UnicodeEncodeError) as error:  # it writes to no folder whose name is not UTF-8
            self._give_up(error)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()

    def _give_up(self, error: Exception) -> None:
        self._writer = None
        logger.warning("VisualDL's log cannot be written (%s); training goes on without it", error)


def _flat(config: Any) -> dict[str, str | int | float]:
    """Flatten the settings to `section/key`, with values that VisualDL shows: numbers and texts.

    With a dot instead of the slash its table would leave their cells empty.
    """

    shown = ((name.replace(".", "/"), value) for name, value in flat(yaml.safe_load(dump(config))))
    return {
        name: value if isinstance(value, str | int | float) and not isinstance(value, bool) else str(value)
        for name, value in shown
    }


def model_card(
    task: Task, config: Any, progress: Progress, batches_per_epoch: int, notes: Sequence[str]
) -> str:
    """Write a short Markdown page: data, recipe, and the dev curve.

    Args:
        notes: what was read, skipped and cut.
    """
    epochs = progress.epoch + progress.batch / batches_per_epoch
    curve = "\n".join(f"| {step:,} | {task.objective.show(figure)} |" for step, figure in progress.curve)
    read = "\n".join(f"- {note}" for note in notes)
    began = f"{progress.start}\n\n" if progress.start else ""
    return f"""# {task.name}, {config.model.name}

Trained by paddle_dialog; the whole recipe stands in `config.yaml` beside this file.

## Data
{read}

{began}## Training
{progress.step:,} steps, {epochs:.2f} epochs, {progress.seconds / 60:.0f} minutes.

| step | dev {task.objective.name} |
|---|---|
{curve}
"""
