"""How far a run is, what is due after a step, and what it reports: averages, log, curves for VisualDL, model card."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import paddle
from paddle import Tensor

from paddle_dialog.config.loader import flat
from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.errors import UserError
from paddle_dialog.figures import LOG_FILE, open_log
from paddle_dialog.metrics import Objective
from paddle_dialog.task import Display, Task
from paddle_dialog.training.distributed import sum_over_ranks

logger = logging.getLogger("paddle_dialog")


class Stop(Enum):
    """Why a run stops."""

    FINISHED = "all steps are done"
    EARLY = "the objective did not get better in training.patience evaluations"
    REQUESTED = "a signal asked for it"


@dataclass
class Progress:
    """The counters of a run: all that a resumed run needs, weights and optimiser aside.

    `epoch` and `batch` count epochs, and batches of the current one, that are done; `step` counts optimiser steps,
    skipped ones included. Figures are the dev set's, of the objective that `objective` names. `processes` and
    `batch_size` define what a batch of the epoch is.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    seconds: float = 0.0
    best_figure: float | None = None
    best_step: int = 0
    evaluations_without_gain: int = 0
    finished: bool = False
    curve: list[tuple[int, float]] = field(default_factory=list)  # (step, figure)
    skipped: int = 0  # steps whose loss or gradient was not finite
    skipped_in_a_row: int = 0
    # State of `paddle.amp.GradScaler`, where it is used.
    scaler: dict[str, float] = field(default_factory=dict)
    processes: int = 0
    batch_size: int = 0
    objective: str = ""
    start: str = ""  # for the card: the weights that the run began with
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of each file of data, by its key

    def bind(self, objective: str, processes: int, batch_size: int) -> None:
        """Set what figures and batches mean, which a resumed run may not change."""
        if self.objective not in ("", objective):
            raise UserError(
                f"the run's models were compared by their {self.objective}, and this version compares them by "
                f"their {objective}; begin the run anew"
            )
        if self.processes and (self.processes, self.batch_size) != (processes, batch_size):
            raise UserError(
                f"the run was started with {self.processes} processes and data.batch_size {self.batch_size}, and "
                f"this is {processes} with {batch_size}; resume with what it was started with"
            )
        self.objective, self.processes, self.batch_size = objective, processes, batch_size

    def count_batches(self, count: int, per_epoch: int) -> None:
        """Count batches, and with its last one the epoch."""
        self.batch += count
        if self.batch >= per_epoch:
            self.epoch, self.batch = self.epoch + 1, 0

    def add_figure(self, figure: float, objective: Objective) -> bool:
        """Add a dev figure to the curve; return whether it is the best, which one that is not finite never is."""
        self.curve.append((self.step, figure))
        best = self.best_figure
        better = math.isfinite(figure) and (best is None or objective.rank(figure) < objective.rank(best))
        if better:
            self.best_figure, self.best_step = figure, self.step
        self.evaluations_without_gain = 0 if better else self.evaluations_without_gain + 1
        return better

    def total_steps(self, settings: TrainingConfig, per_epoch: int) -> int:
        """Return the steps of the whole run from here on; epochs that are done may have had another length.

        Args:
            per_epoch: batches of each process; the last step of an epoch has what is left.
        """
        steps_per_epoch = math.ceil(per_epoch / settings.accumulate)
        done = self.epoch * steps_per_epoch + self.batch // settings.accumulate
        whole = self.step + settings.epochs * steps_per_epoch - done
        return whole if settings.max_steps is None else min(whole, settings.max_steps)

    def completion(self, total_steps: int, patience: int | None) -> Stop | None:
        """Return why the run is complete, or None."""
        if self.step >= total_steps:
            return Stop.FINISHED
        return Stop.EARLY if patience is not None and self.evaluations_without_gain >= patience else None

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Progress:
        """Restore the counters of `dataclasses.asdict`."""
        if odd := values.keys() ^ {each.name for each in dataclasses.fields(cls)}:
            raise KeyError(min(odd))
        for each in dataclasses.fields(cls):
            value, default = values[each.name], getattr(cls(), each.name)
            kinds = (int, float) if isinstance(default, float) or default is None else type(default)
            if not isinstance(value, kinds) and not (value is default is None):
                raise TypeError(f"{each.name} is {value!r:.40}")
            is_wrong_count = isinstance(value, int) and not 0 <= value < 2**53
            if is_wrong_count or (isinstance(value, float) and not math.isfinite(value)):
                raise ValueError(f"{each.name} is {value!r:.40}")
        curve = [(int(step), float(figure)) for step, figure in values["curve"]]
        return cls(**{**values, "curve": curve})


class Meter:
    """The last loss, and the objective of all batches; the sums stay on the device."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._loss: Tensor | None = None
        self._sums: Tensor | float = 0.0  # [K]

    @paddle.no_grad()
    def add(self, loss: Tensor, sums: Sequence[Tensor], units: int = 1, finite_only: bool = False) -> None:
        """Add a batch.

        Args:
            loss: [], a mean over the units.
            sums: K scalars, see `Objective.sums`.
            finite_only: a batch whose sums are not finite adds nothing.
        """
        self._loss, self._units = loss.detach(), units
        added = paddle.stack(list(sums)).astype("float64")  # [K]
        if finite_only:
            added = paddle.where(paddle.isfinite(added).all(), added, paddle.zeros_like(added))
        self._sums = added + self._sums

    def read(self) -> tuple[float, float]:
        """Return the loss of the last batch, and the objective, over all processes; NaN where there was no batch."""
        if self._loss is None:
            return math.nan, math.nan
        assert isinstance(self._sums, Tensor)
        total = float(self._loss) * self._units
        total, units, *sums = sum_over_ranks([total, self._units, *self._sums.numpy().tolist()])
        return total / max(units, 1.0), self._objective.figure(sums)


class Report:
    """Writes what a run reports to the log, and to curves for `visualdl --logdir runs`.

    A resumed run continues the curves' file. If they cannot be written, the first failure becomes a warning, and the
    run continues without them.

    Args:
        folder: of the curves.
        config: shown as hyper-parameters, with the objective on the dev set as their result.
        unit: what the speed is measured in, as a plural.
    """

    def __init__(self, folder: Path, config: Any, objective: Objective, unit: str) -> None:
        self._objective = objective
        self._unit = unit
        self._writer: Any = None
        resumed = (folder / LOG_FILE).exists()
        try:
            self._writer = open_log(folder)
        except (ImportError, OSError) as error:
            self._give_up(error)
        if not resumed:
            # Its table shows numbers and texts, and leaves the cells of names with a dot empty.
            settings = {
                name.replace(".", "/"): value if type(value) in (str, int, float) else str(value)
                for name, value in flat(dataclasses.asdict(config))
            }
            self._write("add_hparams", settings, [f"dev/{objective.name}"])

    def step(self, step: int, of: str, figures: Mapping[str, float], seconds_left: float) -> None:
        """Report the averages since the last report.

        Args:
            of: the whole run and the place in it, e.g. `6000 epoch 1.25`.
            figures: by the names of their curves: `loss`, the objective's, `learning_rate`, `gradient_norm` (before
                clipping), `<unit>_per_second`, `reader_share` (of the time, 0 to 1) and `skipped_steps`.
            seconds_left: of the run, estimated.
        """
        name = self._objective.name
        parts = (
            f"step {step}/{of} loss {figures['loss']:.4f} {name} {self._objective.show(figures[name])}",
            f"lr {figures['learning_rate']:.2e} grad norm {figures['gradient_norm']:.2f}",
            f"{figures[f'{self._unit}_per_second']:.0f} {self._unit}/s reader {figures['reader_share']:.1%}",
            f"eta {timedelta(seconds=round(seconds_left))}",
        )
        skipped = figures["skipped_steps"]
        logger.info("%s%s", " ".join(parts), f" skipped {skipped:.0f}" if skipped else "")
        self._add_points("train", figures, step)

    def evaluation(self, step: int, figure: float, best: bool, display: Display) -> None:
        """Report the dev figure, the task's own measures and the decoded examples."""
        name = self._objective.name
        others = "".join(f" {other} {value:.4f}" for other, value in display.scalars.items())
        mark = " (best so far)" if best else ""
        logger.info("step %d dev %s %s%s%s", step, name, self._objective.show(figure), others, mark)
        self._add_points("dev", {name: figure, **display.scalars}, step)
        for index, text in enumerate(display.texts):
            logger.info("  %s", text)
            self._write("add_text", f"examples/{index}", text, step)

    def close(self) -> None:
        """Write what is left of the curves; the log stays open."""
        if self._writer is not None:
            self._writer.close()

    def _add_points(self, group: str, figures: Mapping[str, float], step: int) -> None:
        for name, value in figures.items():
            if math.isfinite(value):  # a chart cannot show another; the log does
                self._write("add_scalar", f"{group}/{name}", value, step)

    def _write(self, method: str, *values: Any) -> None:
        if self._writer is None:
            return
        try:
            getattr(self._writer, method)(*values)
        except (OSError, UnicodeEncodeError) as error:  # it writes to no folder whose name is not UTF-8
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._writer = None
        logger.warning("VisualDL's log cannot be written (%s); training continues without it", error)


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

Trained by paddle_dialog; the whole recipe is in `config.yaml` in this folder.

## Data
{read}

{began}## Training
{progress.step:,} steps, {epochs:.2f} epochs, {progress.seconds / 60:.0f} minutes.

| step | dev {task.objective.name} |
|---|---|
{curve}
"""


def configure_logging(log_file: str | None = None) -> None:
    """Send the library's log to stderr and, where named, to a file that is appended to; close an earlier file."""
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        with contextlib.suppress(OSError):  # what a full disk did not take is dropped
            handler.close()
    formatter = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S")
    formatter.converter = time.localtime
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if log_file is not None:
        handlers.append(logging.FileHandler(log_file, encoding="utf-8", errors="backslashreplace"))
    for handler in handlers:
        handler.setFormatter(formatter)
        logger.addHandler(handler)
    # Other libraries put a handler on the root logger, which would show matplotlib's search for fonts.
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
