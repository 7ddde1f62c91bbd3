"""Batches of a corpus that is streamed from its file, so that it need not fit in memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from paddle_dialog.data.epochs import EpochBatches
from paddle_dialog.data.files import count_lines, read_lines
from paddle_dialog.data.lengths import Int64Array, order_by_length
from paddle_dialog.errors import UserError


@dataclass(frozen=True)
class StreamedData:
    """Training examples in a text file, one a line.

    Args:
        path: the file, plain, `.gz` or `.xz`.
        read_example: makes an encoded example of a line's number and text, or None where it is left out.
        lengths: the sort key of an example: one length, or those of source and target.
    """

    path: Path
    read_example: Callable[[int, str], Any]
    lengths: Callable[[Any], Sequence[int]]


class StreamedBatches(EpochBatches):
    """Batches of examples of similar length from a file that is read in line order.

    The file is cut into blocks with the lines of `bucket_batches` steps. One block at a time is in memory: its
    examples are shuffled, sorted by length and cut into as many batches as the block has steps, and the order of
    the batches is permuted. So the shuffling reaches as far as a block, and a file should be shuffled once before
    it is streamed. The batches are a function of the file, the arguments and the epoch alone, and how many a block
    has does not depend on what its lines hold: a run resumes at a block without looking at those before.

    Of several replicas each reads every `num_replicas`-th line.

    Args:
        data: the file and how to read it; its lines are counted here, in one pass.
        batch_size: lines a batch of one replica is made of; those left out make batches smaller.
        seed: 0 or more; epoch and block are mixed into it.
        bucket_batches: steps of a block; more means less padding, more shuffling, and more memory.
        num_replicas: processes that share the epoch.
        rank: which of them this one is, from 0.

    Raises:
        UserError: the file cannot be read or has fewer lines than there are replicas.
    """

    def __init__(
        self,
        data: StreamedData,
        batch_size: int,
        seed: int = 0,
        bucket_batches: int = 100,
        num_replicas: int = 1,
        rank: int = 0,
    ) -> None:
        self.num_lines = count_lines(data.path)
        if self.num_lines < num_replicas:
            raise UserError(
                f"{data.path}: {self.num_lines} lines are too few for {num_replicas} processes; start fewer"
            )
        self.bucket_batches = bucket_batches
        self._data = data
        self._seed = seed
        self._step_lines = batch_size * num_replicas
        self._num_replicas = num_replicas
        self._rank = rank

    def __len__(self) -> int:
        last = self._num_blocks - 1
        return last * self.bucket_batches + self._steps_of_block(last)

    @property
    def _num_blocks(self) -> int:
        # The remaining lines join the last block; a block of a few lines might hold no usable example.
        return max(1, self.num_lines // (self.bucket_batches * self._step_lines))

    def _steps_of_block(self, block: int) -> int:
        if block < self._num_blocks - 1:
            return self.bucket_batches
        rest = self.num_lines - block * self.bucket_batches * self._step_lines
        return -(-rest // self._step_lines)

    def _batches(self, epoch: int, skip: int) -> Iterator[list[Any]]:
        block = min(skip // self.bucket_batches, self._num_blocks - 1)
        skip -= block * self.bucket_batches
        block_lines = self.bucket_batches * self._step_lines
        lines = read_lines(self._data.path, skip=block * block_lines)
        while block < self._num_blocks:
            whole = block_lines if block < self._num_blocks - 1 else None
            examples = self._examples(islice(lines, whole), block)
            for positions in self._cut(examples, epoch, block)[skip:]:
                yield [examples[position] for position in positions]
            block, skip = block + 1, 0

    def _examples(self, lines: Iterator[tuple[int, str]], block: int) -> list[Any]:
        """Return this replica's usable examples of a block's lines."""
        replicas, rank, read_example = self._num_replicas, self._rank, self._data.read_example
        read = (read_example(number, line) for number, line in lines if (number - 1) % replicas == rank)
        examples = [example for example in read if example is not None]
        if not examples:
            first = block * self.bucket_batches * self._step_lines + 1
            raise UserError(
                f"{self._data.path}: not one line can be used from line {first} on, in a block of "
                f"{self._steps_of_block(block) * self._step_lines}; look at these lines and at data.max_length"
            )
        return examples

    def _cut(self, examples: list[Any], epoch: int, block: int) -> list[Int64Array]:
        """Return the positions of the examples of each batch, in the order of the steps."""
        steps, count = self._steps_of_block(block), len(examples)
        # The order of the steps is the same everywhere, so that all replicas work on similar lengths.
        step_order = np.random.Generator(np.random.PCG64([self._seed, epoch, block])).permutation(steps)
        own = np.random.Generator(np.random.PCG64([self._seed, epoch, block, self._rank + 1]))
        shuffled = own.permutation(count)
        keys = np.asarray(
            [self._data.lengths(examples[position]) for position in shuffled]
        )  # [count, 1 or 2]
        by_length = shuffled[order_by_length(keys, max(1, count // steps))]
        parts = [by_length[count * step // steps : count * (step + 1) // steps] for step in range(steps)]
        # A batch has at least one example, even where most lines were left out.
        return [parts[step] if len(parts[step]) else by_length[step % count :][:1] for step in step_order]
