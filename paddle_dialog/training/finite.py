"""Steps whose loss or gradient is not finite: skipped and counted; too many in a row end the run."""

from __future__ import annotations

import logging

import paddle
from paddle import Tensor

from paddle_dialog.errors import UserError
from paddle_dialog.training.progress import Progress

logger = logging.getLogger("paddle_dialog")


def read_at_once(flag: Tensor) -> bool:
    """Return whether reading a tensor costs nothing: on a GPU the host would wait for all that is queued there."""
    return bool(flag.place.is_cpu_place())


class SkipCounter:
    """Counts skipped steps in the run's progress.

    On a GPU the flags stay on the device until `settle`, so that no step waits for one.

    Args:
        progress: whose `skipped` and `skipped_in_a_row` are kept.
        most_in_a_row: number of steps skipped in a row that ends the run.
    """

    def __init__(self, progress: Progress, most_in_a_row: int) -> None:
        self._progress = progress
        self._most_in_a_row = most_in_a_row
        self._flags: list[tuple[int, Tensor]] = []  # (step, whether it was finite)

    def note(self, finite: Tensor) -> None:
        """Note the flag of the step that follows those counted in the progress.

        Raises:
            UserError: see `settle`.
        """
        self._flags.append((self._progress.step + 1, finite))
        if read_at_once(finite):
            self.settle()

    def settle(self) -> None:
        """Read the flags noted so far.

        Raises:
            UserError: too many steps in a row were skipped.
        """
        if not self._flags:
            return
        values = paddle.stack([flag for _, flag in self._flags]).numpy()  # [steps since the last call]
        steps = [step for step, _ in self._flags]
        self._flags.clear()
        for step, finite in zip(steps, values, strict=True):
            if finite:
                self._progress.skipped_in_a_row = 0
            else:
                self._skip(step)

    def _skip(self, step: int) -> None:
        progress = self._progress
        progress.skipped += 1
        progress.skipped_in_a_row += 1
        logger.warning("step %d skipped: loss or gradient not finite (%d in all)", step, progress.skipped)
        if progress.skipped_in_a_row >= self._most_in_a_row:
            raise UserError(
                f"step {step}: the loss or gradient of {progress.skipped_in_a_row} steps in a row was not "
                "finite (training.max_skipped); look at the data of these steps or lower "
                "training.learning_rate, and continue from the last checkpoint with --resume auto"
            )
