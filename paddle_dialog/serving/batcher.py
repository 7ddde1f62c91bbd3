"""Dynamic batching: requests that wait at the same time and decode alike are answered together.

One worker thread loads the models and runs them; the event loop hands jobs over and waits. The queue is bounded,
and a job whose request was given up (its client left, or its time was over) is taken out of it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from paddle_dialog.errors import UserError
from paddle_dialog.serving.config import BatchingConfig
from paddle_dialog.serving.endpoint import Endpoint, Job, Record, Unanswerable
from paddle_dialog.serving.log import fault
from paddle_dialog.serving.metrics import Metrics

LOG = logging.getLogger(__name__)
NO_ANSWER = "the model finds no answer to this; write it differently, or ask with fewer rules"
LONGEST_RETRY = 60  # seconds


class Busy(Exception):
    """The server cannot take a job now.

    Args:
        message: for the client.
        retry_after: seconds after which it is worth trying again.
    """

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(eq=False)
class _Waiting:
    endpoint: Endpoint[Any]
    job: Job
    future: asyncio.Future[Record]
    arrived: float = field(default_factory=time.monotonic)

    @property
    def kind(self) -> Hashable:
        """What jobs of one batch have in common."""
        return self.endpoint.path, self.job.settings


class Batcher:
    """The queue and its worker.

    Args:
        settings: sizes and times.
        metrics: told of every batch.
        load: makes the models ready; run first in the worker thread, since Paddle's device belongs to a thread.
    """

    def __init__(self, settings: BatchingConfig, metrics: Metrics, load: Callable[[], None]) -> None:
        self._settings = settings
        self._metrics = metrics
        self._load = load
        self._queue: list[_Waiting] = []
        self._changed = threading.Condition()
        self._closing = False
        self._ready = False
        self._batch_seconds = 0.0  # a moving average
        self._thread = threading.Thread(target=self._work, name="decoder", daemon=True)
        self.failure: UserError | Exception | None = None
        self.on_failure: Callable[[], None] = lambda: None
        metrics.watch_queue(lambda: len(self._queue))

    @property
    def is_ready(self) -> bool:
        """Whether the models are loaded."""
        return self._ready

    def start(self) -> None:
        """Starts to load the models."""
        self._thread.start()

    def close(self) -> None:
        """Answers what waits, then ends the worker; returns when it has ended."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    async def submit(self, endpoint: Endpoint[Any], job: Job) -> Record:
        """Waits for a job's answer; a cancelled wait takes the job out of the queue.

        Raises:
            Busy: the models are not loaded, or the queue is full.
            Unanswerable: there is no answer.
        """
        waiting = _Waiting(endpoint, job, asyncio.get_running_loop().create_future())
        with self._changed:
            if not self._ready or self._closing:
                raise Busy("the models are being loaded or put away; try again in a moment", 1)
            if len(self._queue) >= self._settings.queue:
                self._metrics.refused.inc()
                raise Busy("too many requests are waiting; try again in a moment", self._retry_after())
            self._queue.append(waiting)
            self._changed.notify_all()
        try:
            return await waiting.future
        finally:
            self._withdraw(waiting)

    def _withdraw(self, waiting: _Waiting) -> None:
        with self._changed:
            if waiting in self._queue:
                self._queue.remove(waiting)
                self._metrics.abandoned.inc()

    def _retry_after(self) -> int:
        """Seconds until the present queue is likely to be answered."""
        batches = math.ceil(len(self._queue) / self._settings.max_batch)
        return min(max(1, math.ceil(batches * self._batch_seconds)), LONGEST_RETRY)

    def _work(self) -> None:
        try:
            self._load()
        except Exception as error:
            self.failure = error
            self.on_failure()
            return
        self._ready = True
        while batch := self._next_batch():
            self._answer(batch)

    def _next_batch(self) -> list[_Waiting]:
        """The jobs to decode together, taken out of the queue; none when all is done and the server closes."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            while self._queue:
                first = self._queue[0]
                alike = [w for w in self._queue if w.kind == first.kind][: self._settings.max_batch]
                left = first.arrived + self._settings.max_wait_ms / 1000 - time.monotonic()
                if len(alike) == self._settings.max_batch or left <= 0 or self._closing:
                    self._queue = [w for w in self._queue if w not in alike]
                    return alike
                self._changed.wait(left)
                if not self._queue:  # the only one was given up
                    self._changed.wait_for(lambda: self._queue or self._closing)
        return []

    def _answer(self, batch: list[_Waiting]) -> None:
        task, started = batch[0].endpoint.task, time.monotonic()
        answers: list[Record | Exception]
        try:
            answers = [*self._decoded(batch)]
        except Exception as error:
            fault(LOG, error)
            self._metrics.failures.inc()
            answers = [error] * len(batch)
        seconds = time.monotonic() - started
        self._batch_seconds = (
            seconds if not self._batch_seconds else 0.8 * self._batch_seconds + 0.2 * seconds
        )
        self._metrics.batch_size.labels(task).observe(len(batch))
        self._metrics.decode_seconds.labels(task).observe(seconds)
        for waiting, answer in zip(batch, answers, strict=True):
            _deliver(waiting.future, answer)

    def _decoded(self, batch: list[_Waiting]) -> list[Record | Unanswerable]:
        endpoint, settings = batch[0].endpoint, batch[0].job.settings
        try:
            return endpoint.answer([waiting.job.item for waiting in batch], settings)
        except UserError as error:
            if len(batch) == 1:  # what the error says may name a file or quote the user
                fault(LOG, error)
                return [Unanswerable(NO_ANSWER)]
            return [self._decoded([waiting])[0] for waiting in batch]  # one must not spoil the others


def _deliver(future: asyncio.Future[Record], answer: Record | Exception) -> None:
    """Ends a wait from the worker thread."""

    def settle() -> None:
        if future.done():  # the wait was given up meanwhile
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    loop = future.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(settle)
