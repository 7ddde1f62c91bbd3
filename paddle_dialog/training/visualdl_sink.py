"""Reports of a run for VisualDL: curves, decoded examples, attention heat maps and hyper-parameters."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from paddle_dialog.config.loader import dump, flat
from paddle_dialog.figures.visualdl_log import VisualDLLog, milliseconds
from paddle_dialog.objective import Objective
from paddle_dialog.training.events import Evaluation, StepReport

logger = logging.getLogger("paddle_dialog")


class VisualDLSink:
    """Writes reports for `visualdl --logdir runs`.

    A log that cannot be written, e.g. on a full disk, must not end a training run: the first failure becomes a
    warning, and nothing more is written.

    Args:
        folder: for the log file; a resumed run continues the curves there.
        config: shown as hyper-parameters, with the objective on the dev set as their result.
        objective: that the figures belong to.
        unit: of the speed.
        first_step: steps already done; 0 for a new run.
    """

    def __init__(
        self, folder: Path, config: Any, objective: Objective, unit: str, first_step: int = 0
    ) -> None:
        self._objective = objective.name
        self._unit = unit
        self._log: VisualDLLog | None = None
        try:
            # Imported late, because it is slow and only training needs it.
            from visualdl.component import base_component

            self._components = base_component
            self._log = VisualDLLog(folder, first_step)
        except (ImportError, OSError) as error:
            self._give_up(error)
        if self._log is not None and self._log.is_new:
            name = str(folder)
            self._write(
                lambda new: new.hparam(name, _flat(config), [f"dev/{self._objective}"], milliseconds())
            )

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
            self._add_text(f"examples/{index}", text, step)
        for name, weights in display.heat_maps.items() if self._log is not None else ():
            from paddle_dialog.figures.heat_map import draw_heat_map

            image = draw_heat_map(weights, display.rows, display.columns, name)  # [height, width, 3]
            self.image(name, image, step)

    def image(self, tag: str, image: np.ndarray, step: int) -> None:
        """Add a picture, RGB uint8 [height, width, 3]."""
        self._write(lambda new: new.image(tag, image, step, milliseconds()))

    def _add_point(self, tag: str, value: float, step: int) -> None:
        if math.isfinite(value):  # a chart cannot show it; the text log does
            self._write(lambda new: new.scalar(tag, value, step, milliseconds()))

    def _add_text(self, tag: str, text: str, step: int) -> None:
        self._write(lambda new: new.text(tag, text, step, milliseconds()))

    def _write(self, make_record: Callable[[Any], Any]) -> None:
        if self._log is None:
            return
        try:
            self._log.write(make_record(self._components))
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._log = None
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
