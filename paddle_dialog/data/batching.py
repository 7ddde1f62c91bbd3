"""The data of a run: encoded examples, and their batches: order, padding, and how layers take them.

A batch is a `NamedTuple` of arrays that the task declares. Each array goes to the arguments of its name: of the
network's `forward`, and of the criterion's. Where a batch has None instead of an array, the argument keeps its
default.
"""

from __future__ import annotations

import inspect
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paddle_dialog.data.files import share_of_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import Tensor, io, nn

    from paddle_dialog.config.schema import DataConfig

logger = logging.getLogger("paddle_dialog")

Int64Array = npt.NDArray[np.int64]
MANY_SHARED = 0.1  # of the dev set's lines


def pad_batch(
    sequences: Sequence[Sequence[int]] | Sequence[npt.NDArray[np.integer]], pad_id: int
) -> tuple[Int64Array, Int64Array]:
    """Put sequences of token ids into one array, padded on the right.

    Args:
        sequences: B of them, at least one; each may be empty.

    Returns:
        ids [B, T] and lengths [B], with T the longest length but at least 1.
    """
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))  # [B]
    ids = np.full((len(sequences), max(1, int(lengths.max()))), pad_id, np.int64)  # [B, T]
    for row, sequence, length in zip(ids, sequences, lengths, strict=True):
        row[:length] = np.asarray(sequence)
    return ids, lengths


def target_arrays(
    targets: Sequence[npt.NDArray[np.integer]],
) -> tuple[Int64Array, Int64Array, npt.NDArray[np.float32]]:
    """Return what a decoder reads and what it is to write.

    Args:
        targets: B sequences of ids, without begin and end; they may be empty.

    Returns:
        input ids [B, T], begin token first; output ids [B, T], end token last; the output's mask float32 [B, T].
    """
    begin, end = [Vocabulary.bos_id], [Vocabulary.eos_id]
    given, lengths = pad_batch([np.concatenate([begin, target]) for target in targets], Vocabulary.pad_id)
    wanted, _ = pad_batch([np.concatenate([target, end]) for target in targets], Vocabulary.pad_id)
    return given, wanted, (np.arange(wanted.shape[1]) < lengths[:, None]).astype(np.float32)


class PairBatch(NamedTuple):
    """A training batch of sources and targets."""

    source: Int64Array  # ids [B, S]
    source_lengths: Int64Array  # [B]
    target: Int64Array  # input ids [B, T], begin token first
    label: Int64Array  # output ids [B, T], end token last
    mask: npt.NDArray[np.float32]  # float32 [B, T], 1 on real target tokens


class EpochBatches(ABC):
    """The batches of an epoch, as lists of indices.

    They must be a function of the data, the settings and the epoch alone, so that a run can be resumed inside one.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of batches in a whole epoch, the same in every process."""

    @abstractmethod
    def batches(self, epoch: int, skip: int = 0) -> Iterator[list[int]]:
        """Iterate over the batches of this process in an epoch, from 0, without the first `skip`."""


class LengthBucketSampler(EpochBatches):
    """Batches of indices whose examples are of similar length, so that little padding is needed.

    An epoch with shuffling: all indices are permuted and cut into pools of `bucket_batches` steps; each
    pool is sorted by length (ties stay in permuted order) and cut into steps; the order of the steps is
    permuted. Without shuffling all examples are one pool, ties in their given order. The batches
    are a function of the arguments and the epoch number alone.

    The examples of a step are neighbours in length, and the replicas share them: n replicas of batch size b
    together see at each step what one replica of batch size n·b would. The last step cut, which may be
    smaller, is shared evenly; where it has fewer examples than there are replicas, some are given out twice.

    Args:
        lengths: sort key of each example, [N], or [N, 2] with source and target length. Two keys sort a pool
            by the target, whose positions cost most, and then groups of about the root of its batches by the
            source: both kinds of padding stay small even where the two lengths are hardly correlated.
        batch_size: examples in a batch of one replica; those of the last step cut may be smaller.
        shuffle: False for one fixed order by length.
        bucket_batches: steps in a pool; more means less padding and less random batches.

    Raises:
        UserError: there is no example.
    """

    def __init__(
        self,
        lengths: Sequence[int] | npt.NDArray[np.integer],
        batch_size: int,
        shuffle: bool = True,
        seed: int = 0,
        bucket_batches: int = 100,
        num_replicas: int = 1,
        rank: int = 0,
    ) -> None:
        keys = np.asarray(lengths)
        if len(keys) == 0:
            raise UserError("there is no example to make a batch of")
        self._keys = keys.reshape(len(keys), -1)  # [N, 1 or 2]
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.bucket_batches = bucket_batches
        self.num_replicas = num_replicas
        self.rank = rank

    def __len__(self) -> int:
        return -(-len(self._keys) // self._step_size)

    @property
    def _step_size(self) -> int:
        """Examples of all replicas in one step."""
        return self.batch_size * self.num_replicas

    def batches(self, epoch: int, skip: int = 0) -> Iterator[list[int]]:
        indices, starts = self._order(epoch)
        for start in starts[skip:]:
            step = indices[start : start + self._step_size]
            first, end = (len(step) * part // self.num_replicas for part in (self.rank, self.rank + 1))
            share = step[first:end] if first < end else step[self.rank % len(step) :][:1]
            yield share.tolist()

    def _order(self, epoch: int) -> tuple[Int64Array, Int64Array]:
        """Return all indices in the order they are cut in, and where each step starts."""
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        count = len(self._keys)
        if self.shuffle:
            shuffled = generator.permutation(count)
            pool = self.bucket_batches * self._step_size
            pools = [self._by_length(shuffled[start : start + pool]) for start in range(0, count, pool)]
            indices = np.concatenate(pools)
        else:
            indices = self._by_length(np.arange(count))
        starts = np.arange(0, count, self._step_size)
        return indices, generator.permutation(starts) if self.shuffle else starts

    def _by_length(self, indices: Int64Array) -> Int64Array:
        """Return the indices of a pool in the order in which they are cut into steps."""
        keys = self._keys[indices]  # [N, 1 or 2]
        by_last = np.argsort(keys[:, -1], kind="stable")
        if keys.shape[1] == 1:
            return indices[by_last]
        size = math.isqrt(-(-len(by_last) // self._step_size)) * self._step_size
        parts = [by_last[start : start + size] for start in range(0, len(by_last), size)]
        # lexsort is stable and takes its most significant key last.
        return indices[np.concatenate([part[np.lexsort(keys[part].T[::-1])] for part in parts])]


class ContiguousBatches(EpochBatches):
    """Batches for a network that carries its state: row i of a batch continues row i of the batch before.

    The windows of a text are cut into equally many for each row; those left over at the end are skipped.

    Args:
        windows: their number, in the order of the text.
        rows: of a batch of one process.
    """

    def __init__(self, windows: int, rows: int, num_replicas: int = 1, rank: int = 0) -> None:
        rows = max(1, min(rows, windows // num_replicas))
        self._steps = windows // (rows * num_replicas)
        self._starts = (np.arange(rows) + rank * rows) * self._steps  # [rows]

    def __len__(self) -> int:
        return self._steps

    def batches(self, epoch: int, skip: int = 0) -> Iterator[list[int]]:
        for step in range(skip, self._steps):
            yield (self._starts + step).tolist()


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


def epoch_steps(
    data: TrainingData,
    order: EpochBatches,
    count_units: Callable[[Any], int],
    accumulate: int,
    epoch: int,
    done: int = 0,
) -> Iterator[list[tuple[Any, int]]]:
    """Iterate over the steps of an epoch after its first `done` batches.

    Args:
        order: the examples of each batch of this process.
        count_units: of a batch of arrays, see `Task.count_units`.
        accumulate: batches that make a step; the last step of an epoch has what is left.

    Yields:
        The step's batches as tensors, each with the number of its units.
    """
    dataset = data.train.dataset
    if hasattr(dataset, "set_epoch"):
        dataset.set_epoch(epoch)
    arrays = (data.collate([dataset[index] for index in indices]) for indices in order.batches(epoch, done))
    batches = ((as_tensors(batch), count_units(batch)) for batch in arrays)
    size = accumulate - done % accumulate
    while step := list(islice(batches, size)):
        yield step
        size = accumulate


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
