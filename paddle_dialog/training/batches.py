"""The training batches as ``paddle.Model.fit`` iterates over them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from paddle import io

from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.training.progress import Progress


class TrainingBatches:
    """A loader that starts where the run stands, can be stopped between batches, and counts tokens.

    ``fit`` has no way to stop inside an epoch, so the loader ends early when ``stop`` is set.

    Args:
        dataset: the encoded examples; one that varies from epoch to epoch offers ``set_epoch(epoch)``.
        sampler: yields the batches of an epoch, always the same for the same seed and epoch.
        collate: makes arrays of a list of examples; the last one is the mask of real target tokens.
        progress: tells how many batches of the epoch are done.
        workers: processes that prepare batches; 0 prepares them in the training process.
    """

    def __init__(
        self,
        dataset: io.Dataset,
        sampler: LengthBucketSampler,
        collate: Any,
        progress: Progress,
        workers: int = 0,
    ) -> None:
        self.sampler = sampler
        self.progress = progress
        self.stop = False
        self.tokens = 0
        self.reader_seconds = 0.0
        self._collate = collate
        self._set_epoch = getattr(dataset, "set_epoch", None)
        self._loader = io.DataLoader(
            dataset, batch_sampler=sampler, collate_fn=self._collate_and_count, num_workers=workers
        )

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        return len(self.sampler)

    def __iter__(self) -> Iterator[Any]:
        self.sampler.set_epoch(self.progress.epoch)
        if self._set_epoch is not None:
            self._set_epoch(self.progress.epoch)
        self.sampler.skip_batches(self.progress.batch)
        batches = iter(self._loader)
        while not self.stop:
            began = time.perf_counter()
            try:
                *batch, tokens = next(batches)
            except StopIteration:
                return
            self.reader_seconds += time.perf_counter() - began
            self.tokens += int(tokens.item())
            yield batch

    def _collate_and_count(self, examples: list[Any]) -> list[np.ndarray]:
        """The collated arrays and, last, the number of real target tokens."""
        arrays = self._collate(examples)
        return [*arrays, np.asarray([arrays[-1].sum()], dtype=np.int64)]
