"""Batches of examples of similar length."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from paddle.io import BatchSampler

from paddle_dialog.data.epochs import EpochBatches
from paddle_dialog.data.lengths import Int64Array, order_by_length
from paddle_dialog.errors import UserError


class LengthBucketSampler(EpochBatches, BatchSampler):
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
        seed: 0 or more; the epoch number is mixed into it.
        drop_last: leave out so many examples that all batches are full and none is given out twice: with
            shuffling a random choice in each epoch, otherwise the longest.
        bucket_batches: steps in a pool; more means less padding and less random batches.
        num_replicas: processes that share the epoch.
        rank: which of them this one is, from 0.

    Raises:
        UserError: an argument is out of its range, or there would be no batch.
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
        # BatchSampler's own constructor requires a dataset or sampler; this class needs neither.
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

    def __len__(self) -> int:
        step, count = self._step_size, len(self._keys)
        return count // step if self.drop_last else -(-count // step)

    @property
    def _step_size(self) -> int:
        """Examples of all replicas in one step."""
        return self.batch_size * self.num_replicas

    def _batches(self, epoch: int, skip: int) -> Iterator[list[int]]:
        indices, starts = self._order(epoch)
        for start in starts[skip:]:
            step = indices[start : start + self._step_size]
            yield share_of_step(step, self.num_replicas, self.rank).tolist()

    def _order(self, epoch: int) -> tuple[Int64Array, Int64Array]:
        """Return all indices in the order they are cut in, and where each step starts."""
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        count = len(self._keys)
        used = len(self) * self._step_size if self.drop_last else count
        if self.shuffle:
            # Drop before sorting; afterwards it would always be the longest of a pool.
            shuffled = generator.permutation(count)[:used]
            pool = self.bucket_batches * self._step_size
            pools = [self._by_length(shuffled[start : start + pool]) for start in range(0, used, pool)]
            indices = np.concatenate(pools)
        else:
            indices = self._by_length(np.arange(count))[:used]
        starts = np.arange(0, used, self._step_size)
        return indices, generator.permutation(starts) if self.shuffle else starts

    def _by_length(self, indices: Int64Array) -> Int64Array:
        return indices[order_by_length(self._keys[indices], self._step_size)]


def share_of_step(step: Int64Array, num_replicas: int, rank: int) -> Int64Array:
    """Return one replica's examples of a step: neighbours, and at least one."""
    first, end = (len(step) * part // num_replicas for part in (rank, rank + 1))
    return step[first:end] if first < end else step[rank % len(step) :][:1]
