"""Dynamic batching: waiting requests with equal settings are answered together, in this process or in forks of it.

The event loop queues jobs and waits; a thread for each decoder takes batches from the queue. The queue is bounded, in
number and in the time that it takes. A job whose request was abandoned (its client left, or its time was over) is
removed from it. Slow jobs are decoded alone and never hold all decoders.

The server forks a fork server once its models are loaded and before it starts a thread. That one forks the decoders,
at first and to replace one that died. So a decoder costs a few megabytes and starts at once. (A pool of
`concurrent.futures` breaks as a whole when one process dies, and fresh processes would load the weights once each.)
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe, active_children, get_context
from multiprocessing.connection import Connection
from typing import Any

from paddle_dialog.data.files import Record
from paddle_dialog.device import select_device
from paddle_dialog.errors import UserError
from paddle_dialog.serving.config import BatchingConfig
from paddle_dialog.serving.endpoint import Endpoint, Job, NoResult
from paddle_dialog.serving.telemetry import Metrics, log_exception

LOG = logging.getLogger(__name__)
MAX_RETRY = 60  # seconds
SLOW = 2000  # decoder steps of a job; about half a second
STEPS_PER_SECOND = 4000.0  # until batches have been measured
ENDING = "the server is ending; try again in a moment"
NO_ANSWER = "the model finds no answer to this; write it differently, or ask with fewer rules"


class Busy(Exception):
    """The server cannot take a job now."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DecodingFailed(RuntimeError):
    """A fault of the program while it decoded; the log says where."""


class DecoderLost(Exception):
    """The process that was decoding has died."""


class ForkServerLost(Exception):
    """The process that forks the decoders has died, as one does that the system kills for want of memory."""

    def __init__(self) -> None:
        super().__init__("the process that forks the decoders has died; the server cannot go on without it")


Answer = Record | NoResult | DecodingFailed
Tell = Callable[[Record], object]  # takes what there is of an answer so far
# Answers a batch of jobs of equal settings, in order, one alone in parts if they are wanted; may raise `DecoderLost`.
Decode = Callable[[Endpoint[Any], Sequence[Any], Any, Tell | None], list[Answer]]


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
        decoders: answer batches, one decoder a thread.
        seconds: that a request waits at most; one that would wait longer is refused at once.
        device: selected in each thread, to which Paddle's device belongs.
    """

    def __init__(
        self,
        settings: BatchingConfig,
        metrics: Metrics,
        decoders: Sequence[Decode],
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
        try:
            select_device(self._device)
        except UserError as error:
            self.fail(error)
            return
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


def decode_here(
    endpoint: Endpoint[Any], items: Sequence[Any], settings: Any, tell: Tell | None = None
) -> list[Answer]:
    """Answer a batch in this process; a failure is logged and becomes the answer."""
    try:
        if tell is None or len(items) > 1:
            return [*endpoint.answer(items, settings)]
        answer: Answer = NoResult(NO_ANSWER)
        for answer in endpoint.answer_in_parts(items[0], settings):
            if not isinstance(answer, NoResult):
                tell(answer)
        return [answer]
    except UserError as error:
        if len(items) == 1:  # the message may name a file or quote the user
            log_exception(LOG, error)
            return [NoResult(NO_ANSWER)]
        # One failing job must not fail the others.
        return [answer for item in items for answer in decode_here(endpoint, [item], settings)]
    except Exception as error:
        log_exception(LOG, error)
        return [DecodingFailed()] * len(items)


class ForkServer:
    """A process that forks decoders."""

    def __init__(self, endpoints: Sequence[Endpoint[Any]], listener: socket.socket) -> None:
        self._orders, theirs = socket.socketpair()
        self.endpoints = endpoints
        self._process = get_context("fork").Process(
            target=_fork_decoders, args=(endpoints, theirs, [self._orders, listener]), name="fork-server"
        )
        self._process.start()
        theirs.close()
        self._closing = False

    def fork(self) -> tuple[Connection, int]:
        """Fork a decoder; return the pipe to it and its number as a process."""
        ours, theirs = Pipe()
        try:
            with theirs:
                socket.send_fds(self._orders, [b"1"], [theirs.fileno()])
            return ours, ours.recv()
        except (OSError, EOFError) as error:
            raise ForkServerLost from error

    def watch(self, fail: Callable[[Exception], None]) -> None:
        """Call a function once the fork server dies, as no decoder can be replaced then."""

        def wait() -> None:
            self._orders.recv(1)  # it sends nothing, so this returns at its end
            if not self._closing:
                fail(ForkServerLost())

        threading.Thread(target=wait, name="watch", daemon=True).start()

    def close(self) -> None:
        """End the fork server, which ends its decoders, and wait for it."""
        self._closing = True
        self._orders.shutdown(socket.SHUT_RDWR)
        self._process.join()
        self._orders.close()


class RemoteDecoder:
    """Answers batches in a process that the fork server made.

    Args:
        seconds: after which nobody waits for an answer any more; the process is then replaced.
    """

    def __init__(self, fork_server: ForkServer, seconds: float) -> None:
        self._fork_server, self._seconds = fork_server, seconds
        self._pipe, self._pid = fork_server.fork()

    def __call__(
        self, endpoint: Endpoint[Any], items: Sequence[Any], settings: Any, tell: Tell | None = None
    ) -> list[Answer]:
        number = self._fork_server.endpoints.index(endpoint)
        batch, end = (number, items, settings, tell is not None), time.monotonic() + self._seconds
        try:
            self._pipe.send(batch)
        except OSError:  # it died while idle
            self._replace("has died")
            self._pipe.send(batch)
        try:
            while self._pipe.poll(max(0.0, end - time.monotonic())):
                answers: list[Answer] | Record = self._pipe.recv()
                if isinstance(answers, list):
                    return answers
                if tell is not None:
                    tell(answers)
        except (EOFError, OSError) as error:
            self._replace("has died")
            raise DecoderLost from error
        self._replace("has not answered in time")
        raise DecoderLost

    def _replace(self, why: str) -> None:
        LOG.warning("a decoder %s; another takes its place", why)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._pipe.close()
        self._pipe, self._pid = self._fork_server.fork()

    def close(self) -> None:
        """Let the process end."""
        self._pipe.close()


def _fork_decoders(
    endpoints: Sequence[Endpoint[Any]], orders: socket.socket, foreign: Sequence[socket.socket]
) -> None:
    """Run the fork server: fork a decoder for each pipe it is sent, until the server has ended."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):  # the server gets them too, and ends all in order
        signal.signal(signal_number, signal.SIG_IGN)
    for other in foreign:
        other.close()
    while pipes := socket.recv_fds(orders, 1, 1)[1]:
        with Connection(pipes[0]) as pipe:
            get_context("fork").Process(
                target=_decode, args=(endpoints, pipe, orders), name="decoder"
            ).start()
        active_children()  # reaps those that have ended
    for child in active_children():
        child.kill()  # one that was stopped would not end by itself


def _decode(endpoints: Sequence[Endpoint[Any]], pipe: Connection, orders: socket.socket) -> None:
    """Run a decoder: answer until the server closes its end of the pipe."""
    orders.close()
    pipe.send(os.getpid())
    while True:
        try:
            number, items, settings, in_parts = pipe.recv()
            pipe.send(decode_here(endpoints[number], items, settings, pipe.send if in_parts else None))
        except (EOFError, OSError):
            return
