"""Batches of examples of similar length, and their padding."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from paddle.io import BatchSampler

from paddle_dialog.errors import UserError

Int64Array = npt.NDArray[np.int64]


class LengthBucketSampler(BatchSampler):
    """Batches of indices whose examples are of similar length, so that little padding is needed.

    An epoch with shuffling: all indices are permuted and cut into pools of `bucket_batches` batches; each
    pool is sorted by length (ties stay in permuted order) and cut into batches; the order of the batches is
    permuted. Without shuffling all examples are one pool, ties in their given order. The batches
    are a function of the arguments and the epoch number alone.

    With several replicas, neighbouring batches of a pool go to different replicas in the same step, so that
    these work about equally long. All replicas see the same number of batches; to that end up to
    `num_replicas - 1` batches of an epoch are given out twice.

    Args:
        lengths: sort key of each example, [N], or [N, 2] with source and target length. Two keys sort a pool
            by the target, whose positions cost most, and then groups of about the root of its batches by the
            source: where the two lengths have little to do with each other, both kinds of padding stay small.
        batch_size: examples in a batch of one replica; the last batch cut may be smaller.
        shuffle: False for one fixed order by length.
        seed: 0 or more; the epoch number is mixed into it.
        drop_last: leave out so many examples that all batches are full and no batch is given out twice: with
            shuffling a random choice in each epoch, otherwise the longest.
        bucket_batches: batches in a pool; more means less padding and less chance in who meets whom.
        num_replicas: processes that share the epoch.
        rank: which of them this one is, from 0.

    Raises:
        UserError: an argument is out of its range, or not one batch comes about.
    """

    def __init__(
        self,
        lengths: Sequence[int] | npt.NDArray[np.integer],
        batch_size: int,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        bucket_batches: int = 100,
        num_replicas: int = 1,
        rank: int = 0,
    ) -> None:
        # BatchSampler's own constructor wants a dataset or sampler, which this class does without.
        keys = np.asarray(lengths)
        if not (keys.ndim == 1 or (keys.ndim == 2 and keys.shape[1] == 2)):
            raise ValueError(f"lengths must be of shape [N] or [N, 2], not {list(keys.shape)}")
        for name, value in (("batch_size", batch_size), ("bucket_batches", bucket_batches)):
            if value < 1:
                raise UserError(f"{name}: {value} is too small; it must be at least 1")
        if seed < 0:
            raise UserError(f"seed: {seed} is negative; it must be 0 or more")
        if not 0 <= rank < num_replicas:
            raise UserError(
                f"rank: {rank} is not one of {num_replicas} replicas; it must be from 0 to one below"
            )
        smallest = batch_size * num_replicas if drop_last else 1
        if len(keys) < smallest:
            raise UserError(
                f"batch_size: {len(keys)} examples do not make one batch; at least {smallest} are needed"
            )
        self._keys = keys.reshape(len(keys), -1)  # [N, 1 or 2]
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.bucket_batches = bucket_batches
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self._skip = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0, whose batches the next iteration gives (`Model.fit` does not do it)."""
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

    def __len__(self) -> int:
        """Return the batches of one replica in a whole epoch, whatever `skip_batches` was told."""
        step = self.batch_size * self.num_replicas
        return len(self._keys) // step if self.drop_last else -(-len(self._keys) // step)

    def __iter__(self) -> Iterator[list[int]]:
        """Return the batches of this replica in the current epoch, as lists of indices."""
        skip, self._skip = self._skip, 0
        return self._batches(self._epoch_order(), skip)

    def _batches(self, order: tuple[Int64Array, Int64Array], skip: int) -> Iterator[list[int]]:
        indices, starts = order
        for start in starts[skip:]:
            yield indices[start : start + self.batch_size].tolist()

    def _epoch_order(self) -> tuple[Int64Array, Int64Array]:
        """Return all indices in the order they are cut in, and where each batch of this replica starts."""
        generator = np.random.Generator(np.random.PCG64([self.seed, self.epoch]))
        count = len(self._keys)
        used = len(self) * self.batch_size * self.num_replicas if self.drop_last else count
        if self.shuffle:
            # Dropped before sorting: afterwards it would always be the longest of a pool.
            shuffled = generator.permutation(count)[:used]
            pool = self.bucket_batches * self.batch_size
            pools = [self._by_length(shuffled[start : start + pool]) for start in range(0, used, pool)]
            indices = np.concatenate(pools)
        else:
            indices = self._by_length(np.arange(count))[:used]
        starts = np.arange(0, used, self.batch_size)
        steps = np.resize(starts, (len(self), self.num_replicas))  # repeats from the beginning to fill up
        return indices, (generator.permutation(steps) if self.shuffle else steps)[:, self.rank]

    def _by_length(self, indices: Int64Array) -> Int64Array:
        by_last = indices[np.argsort(self._keys[indices, -1], kind="stable")]
        if self._keys.shape[1] == 1:
            return by_last
        batches = -(-len(by_last) // self.batch_size)
        size = math.isqrt(batches) * self.batch_size
        parts = [by_last[start : start + size] for start in range(0, len(by_last), size)]
        # lexsort is stable and takes its most significant key last.
        return np.concatenate([part[np.lexsort(self._keys[part].T[::-1])] for part in parts])


def pad_batch(
    sequences: Sequence[Sequence[int]] | Sequence[npt.NDArray[np.integer]], pad_id: int
) -> tuple[Int64Array, Int64Array]:
    """Put sequences of token ids into one array, padded on the right.

    Args:
        sequences: B sequences of ids; they may be empty.
        pad_id: id that fills the rest of each row.

    Returns:
        ids [B, T] and lengths [B], with T the longest length but at least 1.

    Raises:
        ValueError: there is no sequence.
    """
    if len(sequences) == 0:
        raise ValueError("a batch needs at least one sequence")
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))  # [B]
    ids = np.full((len(sequences), max(1, int(lengths.max()))), pad_id, np.int64)  # [B, T]
    for row, sequence, length in zip(ids, sequences, lengths, strict=True):
        row[:length] = np.asarray(sequence)
    return ids, lengths
