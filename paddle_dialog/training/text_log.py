"""Reports of a run as lines of text."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from datetime import timedelta

from paddle_dialog.objective import Objective
from paddle_dialog.training.events import Evaluation, StepReport

logger = logging.getLogger("paddle_dialog")


class TextLog:
    """Writes reports to the log (stderr and `train.log`).

    Args:
        objective: that the figures belong to.
        unit: of the speed.
    """

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
        handlers.append(LogFile(log_file, encoding="utf-8"))
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
