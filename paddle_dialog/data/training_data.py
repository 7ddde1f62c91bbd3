"""What a run needs to know of its data: encoded examples, how they become batches, and what was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.data.streaming import StreamedData
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import io


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
