"""What a run needs to know of its data: encoded examples, how they become batches, and what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from paddle_dialog.data.streaming import StreamedData
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import io


class EpochBatches(Protocol):
    """The batches of an epoch, as lists of what the loader takes: indices, or examples that are streamed.

    They must be a function of the data, the settings and the epoch alone, so that a run can be resumed inside one.
    """

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0, that the next iteration gives."""

    def skip_batches(self, count: int) -> None:
        """Let the next iteration, and only that one, start after so many batches."""

    def __len__(self) -> int:
        """Return the number of batches in a whole epoch, the same in every process."""

    def __iter__(self) -> Iterator[list[Any]]:
        """Iterate over the batches of this process."""


@dataclass
class EncodedData:
    """Examples as ids.

    Args:
        dataset: one encoded example an index; one that varies from epoch to epoch offers `set_epoch(epoch)`.
        lengths: sort keys [N] or [N, 2] that keep padding small.
    """

    dataset: io.Dataset
    lengths: np.ndarray


@dataclass
class TrainingData:
    """All that a run needs to know of its data.

    Args:
        train: the training examples, or where they are streamed from.
        dev: the examples of the dev figure, or None.
        collate: makes a batch of arrays: the network's inputs, then the criterion's labels.
        vocabularies: saved with the model.
        notes: what was read, skipped and cut, a sentence each.
        files: what answering needs to know of the data, as files of the bundle by name; see `Task.bundle_files`.
    """

    train: EncodedData | StreamedData
    dev: EncodedData | None
    vocabularies: Mapping[str, Vocabulary]
    collate: Callable[[list[Any]], list[np.ndarray]]
    notes: list[str] = field(default_factory=list)
    files: Mapping[str, bytes] = field(default_factory=dict)
