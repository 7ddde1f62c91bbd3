"""Decoding of batches, in this process or in forks that share its models and memory.

The server forks a fork server once its models are loaded and before it starts a thread. That one forks the decoders,
at first and to replace one that died. So a decoder costs a few megabytes and starts at once. (A pool of
`concurrent.futures` breaks as a whole when one process dies, and fresh processes would load the weights once each.)
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe, active_children, get_context
from multiprocessing.connection import Connection
from typing import Any

from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from paddle_dialog.serving.endpoint import Endpoint, NoResult
from paddle_dialog.serving.telemetry import log_exception

LOG = logging.getLogger(__name__)
NO_ANSWER = "the model finds no answer to this; write it differently, or ask with fewer rules"


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
