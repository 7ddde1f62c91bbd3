"""The batches of an epoch, and where in it a run begins again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from paddle_dialog.errors import UserError


class EpochBatches(ABC):
    """The batches of an epoch, as lists of what the loader takes: indices, or examples that are streamed.

    They must be a function of the data, the settings and the epoch alone, so that a run can be resumed inside one.
    """

    epoch = 0
    _skip = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0, whose batches the next iteration gives (`Model.fit` does not call it)."""
        self.epoch = epoch

    def skip_batches(self, count: int) -> None:
        """Let the next iteration, and only that one, start after `count` batches, to resume inside an epoch.

        Raises:
            UserError: the epoch has fewer batches.
        """
        if not 0 <= count <= len(self):
            raise UserError(
                f"cannot resume after {count} batches of an epoch that has {len(self)}; "
                "use the data and batch size the run was started with"
            )
        self._skip = count

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of batches in a whole epoch, the same in every process, whatever is skipped."""

    def __iter__(self) -> Iterator[list[Any]]:
        """Iterate over the batches of this process."""
        skip, self._skip = self._skip, 0
        return self._batches(self.epoch, skip)

    @abstractmethod
    def _batches(self, epoch: int, skip: int) -> Iterator[list[Any]]:
        """Iterate over the batches of this process in an epoch, without the first `skip`."""
