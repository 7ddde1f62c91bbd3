"""The training batches as `paddle.Model.fit` iterates over them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from paddle import io

from paddle_dialog.data.training_data import TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.task import Task
from paddle_dialog.training.distributed import num_ranks, rank, sum_over_ranks
from paddle_dialog.training.progress import Progress

_NO_ARRAY = np.zeros(1, "int64")  # Paddle's queue takes nothing without an array
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux's prctl


@dataclass(frozen=True)
class Step:
    """What one step of the optimiser learns from.

    Args:
        batches: as tensors, one or, where gradients are accumulated, several.
        shares: each batch's share of the step's units (see `Task.count_units`), over all processes.
    """

    batches: list[Any]
    shares: list[float]

    @property
    def shape(self) -> list[int]:
        """The number of batches, as `paddle.Model` asks for the first size of what a loader gives."""
        return [len(self.batches)]


class TrainingBatches:
    """A loader of steps that starts where the run stands.

    Args:
        progress: counts the batches of the epoch that are done.

    Attributes:
        units: number of units in the batches so far; the reader resets it.
        reader_seconds: seconds spent waiting for batches so far; the reader resets it too.
    """

    def __init__(self, task: Task, config: Any, data: TrainingData, progress: Progress) -> None:
        self.units = 0
        self.reader_seconds = 0.0
        self._sampler = task.training_batches(config, data.train, num_ranks(), rank())
        self._progress = progress
        self._collate = data.collate
        self._count = task.count_units
        self._accumulate = config.training.accumulate
        # Paddle's thread dies of an error, and the run would wait for ever; its processes hand it over as many lines.
        self._caught = UserError if config.data.workers else Exception
        dataset = data.train.dataset
        self._set_epoch = getattr(dataset, "set_epoch", lambda epoch: None)
        self._loader = io.DataLoader(
            range(len(dataset)),
            batch_sampler=self._sampler,
            collate_fn=partial(self._take, dataset),
            num_workers=config.data.workers,
            worker_init_fn=_separate_worker,
            use_buffer_reader=True,  # the next batch is on its way to the GPU while this one is computed
        )

    def __len__(self) -> int:
        """Return the number of batches in a whole epoch."""
        return len(self._sampler)

    def __iter__(self) -> Iterator[Step]:
        done = self._progress.batch
        self._sampler.set_epoch(self._progress.epoch)
        self._set_epoch(self._progress.epoch)
        self._sampler.skip_batches(done)
        batches = iter(self._loader)
        while done < len(self):
            began = time.perf_counter()
            wanted = min(self._accumulate - done % self._accumulate, len(self) - done)
            step = list(islice(batches, wanted))
            self.reader_seconds += time.perf_counter() - began
            for first, *_ in step:
                if isinstance(first, Exception):
                    raise first
            if len(step) < wanted:
                return  # Paddle's iterator fails if it is advanced past its end
            units = [count for *_, count in step]
            self.units += sum(units)
            yield Step([kind(*arrays) for kind, *arrays, _ in step], self._shares(units))
            done += wanted

    def _shares(self, units: list[int]) -> list[float]:
        """Compute each batch's share of its step, in the units of all processes."""
        if len(units) <= 1:
            return [1.0] * len(units)
        everywhere = sum_over_ranks(units)
        total = sum(everywhere)
        return [count / total if total else 1.0 / len(units) for count in everywhere]

    def _take(self, dataset: Any, indices: list[int]) -> list[Any]:
        """Collate a batch; return its kind, which the loader would forget, its arrays, and its units.

        A plain number stays on the host, where the loader would put an array on the GPU. An error that a dataset
        raises comes in place of a batch, see `__iter__`.
        """
        try:
            batch = self._collate([dataset[index] for index in indices])
        except self._caught as error:
            return [error, _NO_ARRAY]
        return [type(batch), *batch, self._count(batch)]


@contextmanager
def lost_loader() -> Iterator[None]:
    """Tell in a sentence that a process which prepares batches has been killed; Paddle raises it wherever the run is.

    Raises:
        UserError: one has been.
    """
    try:
        yield
    except (SystemError, RuntimeError) as error:
        if "DataLoader process" not in str(error) and "queue is killed" not in str(error):
            raise
        raise UserError(
            "a process that prepares batches was killed, maybe for want of memory; --resume auto continues from the "
            "last checkpoint, with -o data.workers=0 in one process"
        ) from error


def _separate_worker(worker: int) -> None:
    """Shield a worker from signals to the whole group, and let it end with the run.

    A terminal or service sends Ctrl-C or SIGTERM to all processes. A worker that died of it would end the run in the
    middle of its orderly stop; and Paddle's workers wait for work forever if the run is killed.
    """
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
