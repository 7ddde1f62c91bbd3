"""The run's record for VisualDL: curves, decoded examples, attention heat maps and hyper-parameters."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from paddle_dialog.training.events import Evaluation, StepReport

logger = logging.getLogger("paddle_dialog")

DEV_PERPLEXITY = "dev/perplexity"


class VisualDLSink:
    """Writes reports for ``visualdl --logdir runs``.

    A log that cannot be written (a full disk, say) must not end a training run: the first failure is a warning,
    and nothing more is written.

    Args:
        folder: where the log files go; a resumed run adds a file, and its curves continue.
        config: shown as hyper-parameters.
        first_step: 0 for a new run.
    """

    def __init__(self, folder: Path, config: Any, first_step: int = 0) -> None:
        self._writer: Any = None
        try:
            from visualdl import LogWriter  # imported late: it is slow, and only training needs it

            self._writer = LogWriter(logdir=str(folder))
        except (ImportError, OSError, RuntimeError) as error:
            self._give_up(error)
        if first_step == 0:
            self._write(lambda writer: writer.add_hparams(_flat(config), [DEV_PERPLEXITY]))

    def step(self, report: StepReport) -> None:
        """Adds a point to each training curve."""
        curves = {
            "train/loss": report.loss,
            "train/perplexity": report.perplexity,
            "train/learning_rate": report.learning_rate,
            "train/gradient_norm": report.gradient_norm,
            "train/tokens_per_second": report.tokens_per_second,
            "train/reader_share": report.reader_share,
        }
        for tag, value in curves.items():
            self._write(lambda writer, tag=tag, value=value: writer.add_scalar(tag, value, report.step))

    def evaluation(self, evaluation: Evaluation) -> None:
        """Adds the dev perplexity, the examples and the heat map."""
        step, display = evaluation.step, evaluation.display
        self._write(lambda writer: writer.add_scalar(DEV_PERPLEXITY, evaluation.perplexity, step))
        for index, text in enumerate(display.texts):
            self._write(lambda writer, i=index, text=text: writer.add_text(f"examples/{i}", text, step))
        if display.heat_map is not None:
            from paddle_dialog.training.heat_map import draw_heat_map

            image = draw_heat_map(display.heat_map, display.rows, display.columns)  # [height, width, 3]
            self._write(lambda writer: writer.add_image("attention", image, step))

    def close(self) -> None:
        """Flushes and closes the log files."""
        self._write(lambda writer: writer.close())

    def _write(self, write: Callable[[Any], None]) -> None:
        if self._writer is None:
            return
        try:
            write(self._writer)
        except (OSError, RuntimeError, ValueError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._writer = None
        logger.warning("VisualDL's log cannot be written (%s); training goes on without it", error)


def _flat(config: Any) -> dict[str, str | int | float]:
    """The settings as ``section.key`` with values that VisualDL shows: numbers and texts."""

    def walk(prefix: str, value: Any) -> Iterator[tuple[str, str | int | float]]:
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                yield from walk(f"{prefix}.{field.name}" if prefix else field.name, getattr(value, field.name))
        elif isinstance(value, bool) or not isinstance(value, str | int | float):
            yield prefix, str(value)
        else:
            yield prefix, value

    return dict(walk("", config))
