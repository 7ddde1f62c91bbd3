"""Dynamic batching: waiting requests with equal settings are answered together.

The event loop queues jobs and waits; a thread for each decoder takes batches from the queue. The queue is bounded, in
number and in the time that it takes. A job whose request was abandoned (its client left, or its time was over) is
removed from it. Slow jobs are decoded alone and never hold all decoders.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from paddle_dialog.data.records import Record
from paddle_dialog.device import select_device
from paddle_dialog.serving.config import BatchingConfig
from paddle_dialog.serving.decoders import Answer, Decode, DecoderLost, DecodingFailed, Tell, decode_here
from paddle_dialog.serving.endpoint import Endpoint, Job
from paddle_dialog.serving.telemetry import Metrics, log_exception

LOG = logging.getLogger(__name__)
MAX_RETRY = 60  # seconds
SLOW = 2000  # decoder steps of a job; about half a second
STEPS_PER_SECOND = 4000.0  # until batches have been measured
ENDING = "the server is ending; try again in a moment"


class Busy(Exception):
    """The server cannot take a job now."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(eq=False)
class _Waiting:
    endpoint: Endpoint[Any]
    job: Job
    future: asyncio.Future[Record]
    tell: Tell | None

    @property
    def kind(self) -> Hashable:
        """What jobs of one batch have in common."""
        return self.endpoint, self.job.settings

    @property
    def is_slow(self) -> bool:
        """Whether its answer takes long."""
        return self.job.cost > SLOW


class Batcher:
    """The queue and its workers.

    Args:
        decoders: answer batches, one decoder a thread; by default one that decodes in the thread itself.
        seconds: that a request waits at most; one that would wait longer is refused at once.
        device: selected in each thread, to which Paddle's device belongs.
    """

    def __init__(
        self,
        settings: BatchingConfig,
        metrics: Metrics,
        decoders: Sequence[Decode] = (decode_here,),
        seconds: float = math.inf,
        device: str = "auto",
    ) -> None:
        self._settings, self._seconds, self._device = settings, seconds, device
        self._metrics = metrics
        self._queue: list[_Waiting] = []
        self._changed = threading.Condition()
        self._closing = False
        self._speed = STEPS_PER_SECOND  # of one decoder, a moving average
        self._idle = 0  # threads that wait for a batch
        self._threads = [
            threading.Thread(target=self._work, args=(decode,), name="decoder", daemon=True)
            for decode in decoders
        ]
        self.fail: Callable[[Exception], None] = lambda error: None  # called where no decoder is left
        metrics.queue_length.set_function(lambda: len(self._queue))

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Answer the waiting jobs, then end the threads and wait for their end."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    async def submit(self, endpoint: Endpoint[Any], job: Job, tell: Tell | None = None) -> Record:
        """Wait for a job's answer; a cancelled wait takes the job out of the queue.

        Where it takes long, `tell` is called with what there is of it so far.
        """
        loop = asyncio.get_running_loop()
        later = partial(loop.call_soon_threadsafe, tell) if tell and job.cost > SLOW else None  # type: ignore[arg-type]
        waiting = _Waiting(endpoint, job, loop.create_future(), later)
        with self._changed:
            if self._closing:
                raise Busy(ENDING, 1)
            if len(self._queue) >= self._settings.queue or self._wait_for(waiting) > self._seconds:
                self._metrics.refused.inc()
                retry = min(max(1, math.ceil(self._wait_for(waiting))), MAX_RETRY)
                raise Busy("too many requests are waiting; try again in a moment", retry)
            self._queue.append(waiting)
            self._changed.notify_all()
        try:
            return await waiting.future
        finally:
            with self._changed:
                if waiting in self._queue:  # the client has left, or the time is over
                    self._queue.remove(waiting)
                    self._metrics.abandoned.inc()

    def _wait_for(self, waiting: _Waiting) -> float:
        """Estimate the seconds until the queue before a job is answered; slow jobs leave one decoder to others."""
        decoders = len(self._threads)
        before = sum(w.job.cost for w in self._queue if decoders == 1 or w.is_slow == waiting.is_slow)
        return before / self._speed / (decoders - 1 if waiting.is_slow and decoders > 1 else decoders)

    def _work(self, decode: Decode) -> None:
        select_device(self._device)
        while batch := self._next_batch():
            self._answer(batch, decode)

    def _next_batch(self) -> list[_Waiting]:
        """Take the next jobs to decode together from the queue; none when the server closes and all is done.

        Waiting jobs are shared among the waiting threads.
        """
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._takeable() or self._closing)
            taken = self._takeable()[:1]
            if taken and not taken[0].is_slow:
                alike = [w for w in self._queue if w.kind == taken[0].kind and not w.is_slow]
                taken = alike[: min(self._settings.max_batch, math.ceil(len(alike) / self._idle))]
            self._queue = [w for w in self._queue if w not in taken]
            self._idle -= 1
            return taken

    def _takeable(self) -> list[_Waiting]:
        """Return the waiting jobs that a free thread may take: no slow ones where others would have none left."""
        takes_slow = self._idle > 1 or len(self._threads) == 1 or self._closing
        return [waiting for waiting in self._queue if takes_slow or not waiting.is_slow]

    def _answer(self, batch: list[_Waiting], decode: Decode) -> None:
        endpoint, settings = batch[0].endpoint, batch[0].job.settings
        started = time.monotonic()
        answers: Sequence[Answer | Busy]
        try:
            answers = decode(endpoint, [waiting.job.item for waiting in batch], settings, batch[0].tell)
        except DecoderLost:
            self._metrics.lost.inc()
            answers = [Busy("the process that was answering this has died; try again", 1)] * len(batch)
        except Exception as error:  # no other decoder could be made
            log_exception(LOG, error)
            self.fail(error)
            answers = [Busy(ENDING, 1)] * len(batch)
        seconds = time.monotonic() - started
        if any(isinstance(answer, DecodingFailed) for answer in answers):
            self._metrics.failures.inc()
        steps = sum(waiting.job.cost for waiting in batch)
        self._speed = 0.9 * self._speed + 0.1 * steps / max(seconds, 1e-3)
        self._metrics.batch_size.labels(endpoint.task).observe(len(batch))
        self._metrics.decode_seconds.labels(endpoint.task).observe(seconds)
        for waiting, answer in zip(batch, answers, strict=True):
            _deliver(waiting.future, answer)


def _deliver(future: asyncio.Future[Record], answer: Answer | Busy) -> None:
    """Deliver an answer from the worker thread."""

    def settle() -> None:
        if future.done():  # the wait was cancelled meanwhile
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    loop = future.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(settle)
