"""The data of a run: encoded examples, and the batches that are made of them.

A batch is a `NamedTuple` of arrays that the task declares. Each array goes to the arguments of its name: of the
network's `forward`, and of the criterion's. Where a batch has None instead of an array, the argument keeps its
default.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.data.batching import EpochBatches
from paddle_dialog.data.files import share_of_lines
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import Tensor, io, nn

    from paddle_dialog.config.schema import DataConfig

logger = logging.getLogger("paddle_dialog")

MANY_SHARED = 0.1  # of the dev set's lines


@dataclass
class EncodedData:
    """Examples as ids."""

    # One encoded example an index; one that varies from epoch to epoch offers `set_epoch(epoch)`.
    dataset: io.Dataset
    lengths: np.ndarray  # sort keys [N] or [N, 2] that keep padding small


@dataclass
class TrainingData:
    """All that a run needs to know of its data."""

    train: EncodedData
    dev: EncodedData | None  # the examples of the dev figure, or None
    vocabularies: Mapping[str, Vocabulary]
    collate: Callable[[list[Any]], Any]
    notes: list[str] = field(default_factory=list)  # what was read, skipped and cut, a sentence each
    # What answering needs to know of the data, as files of the bundle by name; see `Task.bundle_files`.
    files: Mapping[str, bytes] = field(default_factory=dict)


class TrainingBatches:
    """The batches of a run, grouped into the steps of an epoch.

    Args:
        order: the examples of each batch of this process.
        count_units: of a batch of arrays, see `Task.count_units`.
        accumulate: batches that make a step; the last step of an epoch has what is left.

    Attributes:
        units: in the batches so far; the reader resets it.
        seconds: spent on making the batches so far; the reader resets it too.
    """

    def __init__(
        self, data: TrainingData, order: EpochBatches, count_units: Callable[[Any], int], accumulate: int = 1
    ) -> None:
        self.units = 0
        self.seconds = 0.0
        self._dataset, self._collate = data.train.dataset, data.collate
        self._order = order
        self._count_units = count_units
        self._accumulate = accumulate

    def __len__(self) -> int:
        """Return the number of batches in a whole epoch."""
        return len(self._order)

    def steps(self, epoch: int, done: int) -> Iterator[list[tuple[Any, int]]]:
        """Iterate over the steps of an epoch after its first `done` batches.

        Yields:
            The step's batches as tensors, each with the number of its units.
        """
        if hasattr(self._dataset, "set_epoch"):
            self._dataset.set_epoch(epoch)
        order = self._order.batches(epoch, done)
        size = self._accumulate - done % self._accumulate
        while step := self._make_step(islice(order, size)):
            yield step
            size = self._accumulate

    def _make_step(self, order: Iterable[list[int]]) -> list[tuple[Any, int]]:
        began = time.perf_counter()
        step = []
        for indices in order:
            batch = self._collate([self._dataset[index] for index in indices])
            step.append((as_tensors(batch), self._count_units(batch)))
        self.seconds += time.perf_counter() - began
        self.units += sum(units for _, units in step)
        return step


def warn_of_dev_data(data: DataConfig) -> None:
    """Warn where the dev set says nothing of new examples, or is of something else."""
    if data.dev is None:
        return
    files = Path(data.train).is_file() and Path(data.dev).is_file()
    share = float(data.dev == data.train) or (share_of_lines(data.dev, data.train) if files else 0.0)
    if share > MANY_SHARED:
        logger.warning(
            "data.dev: %.0f %% of it is in data.train, so its figures measure what was learnt by heart; hold other "
            "examples back, or set -o data.dev=null",
            100 * share,
        )
    elif data.dev.startswith("sample") and not data.train.startswith("sample"):
        logger.warning(
            "data.dev is the sample that ships, and data.train is not; name a dev set of your own, or null"
        )


def run_network(network: nn.Layer, batch: Any) -> list[Tensor]:
    """Call a network with the arrays of a batch that it takes, and return its outputs."""
    outputs = network(**_arguments(network, batch))
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def run_criterion(criterion: nn.Layer, outputs: Sequence[Tensor], batch: Any) -> Tensor:
    """Call a criterion with a network's outputs and the arrays of the batch that it takes, and return the loss."""
    return criterion(*outputs, **_arguments(criterion, batch, len(outputs)))


def as_tensors(batch: Any) -> Any:
    """Return a batch with tensors instead of arrays."""
    import paddle

    return type(batch)(*(None if array is None else paddle.to_tensor(array) for array in batch))


def _arguments(layer: nn.Layer, batch: Any, filled: int = 0) -> dict[str, Tensor]:
    """Return the arrays that have the name of an argument of `forward`, after the first `filled` ones."""
    parameters = inspect.signature(layer.forward).parameters.values()
    named = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    named += [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD][filled:]
    arrays = batch._asdict()
    return {
        each.name: arrays[each.name]
        for each in named
        if each.name in arrays and (arrays[each.name] is not None or each.default is each.empty)
    }
