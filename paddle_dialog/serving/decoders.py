"""Decoding of batches, in this process or in forks that share its models and memory.

The server forks a fork server once its models are loaded and before it starts a thread. That one forks the decoders,
at first and to replace one that died. So a decoder costs a few megabytes and starts at once. (A pool of
`concurrent.futures` breaks as a whole when one process dies, and fresh processes would load the weights once each.)
"""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import Pipe, active_children, get_context
from multiprocessing.connection import Connection
from typing import Any

from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from paddle_dialog.serving.endpoint import Endpoint, NoResult
from paddle_dialog.serving.telemetry import fault

LOG = logging.getLogger(__name__)
NO_ANSWER = "the model finds no answer to this; write it differently, or ask with fewer rules"


class DecodingFailed(RuntimeError):
    """A fault of the program while it decoded; the log says where."""


class DecoderLost(Exception):
    """The process that was decoding has died."""


Answer = Record | NoResult | DecodingFailed
# Answers a batch of jobs of equal settings, in order; may raise `DecoderLost`.
Decode = Callable[[Endpoint[Any], Sequence[Any], Any], list[Answer]]


def decode_here(endpoint: Endpoint[Any], items: Sequence[Any], settings: Any) -> list[Answer]:
    """Answer a batch in this process; a failure is logged and becomes the answer."""
    try:
        return [*endpoint.answer(items, settings)]
    except UserError as error:
        if len(items) == 1:  # the message may name a file or quote the user
            fault(LOG, error)
            return [NoResult(NO_ANSWER)]
        # One failing job must not fail the others.
        return [answer for item in items for answer in decode_here(endpoint, [item], settings)]
    except Exception as error:
        fault(LOG, error)
        return [DecodingFailed()] * len(items)


class ForkServer:
    """A process that forks decoders.

    Args:
        listener: the server's socket, which only the server may hold.
    """

    def __init__(self, endpoints: Sequence[Endpoint[Any]], listener: socket.socket) -> None:
        self._orders, theirs = socket.socketpair()
        by_path = {endpoint.path: endpoint for endpoint in endpoints}
        self._process = get_context("fork").Process(
            target=_fork_decoders, args=(by_path, theirs, [self._orders, listener]), name="fork-server"
        )
        self._process.start()
        theirs.close()

    def fork(self) -> Connection:
        """Fork a decoder and return the pipe to it.

        Raises:
            RuntimeError: the fork server has died.
        """
        ours, theirs = Pipe()
        with theirs:
            try:
                socket.send_fds(self._orders, [b"1"], [theirs.fileno()])
            except OSError as error:
                raise RuntimeError("the process that forks the decoders has died") from error
        return ours

    def close(self) -> None:
        """Wait for the end of the fork server and of its decoders, whose pipes must be closed."""
        self._orders.close()
        self._process.join()


class RemoteDecoder:
    """Answers batches in a process that the fork server made."""

    def __init__(self, fork_server: ForkServer) -> None:
        self._fork_server = fork_server
        self._pipe = fork_server.fork()

    def __call__(self, endpoint: Endpoint[Any], items: Sequence[Any], settings: Any) -> list[Answer]:
        """See `Decode`."""
        batch = (endpoint.path, items, settings)
        try:
            self._pipe.send(batch)
        except OSError:  # it died while idle
            self._replace()
            self._pipe.send(batch)
        try:
            answers: list[Answer] = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._replace()
            raise DecoderLost from error
        return answers

    def _replace(self) -> None:
        LOG.warning("a decoder has died; another takes its place")
        self._pipe.close()
        self._pipe = self._fork_server.fork()

    def close(self) -> None:
        """Let the process end."""
        self._pipe.close()


def _fork_decoders(
    endpoints: Mapping[str, Endpoint[Any]], orders: socket.socket, foreign: Sequence[socket.socket]
) -> None:
    """Run the fork server: fork a decoder for each pipe it is sent, until the server has ended."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            signal_number, signal.SIG_IGN
        )  # they reach the server too, which ends the others in order
    for other in foreign:
        other.close()
    while pipes := socket.recv_fds(orders, 1, 1)[1]:
        with Connection(pipes[0]) as pipe:
            get_context("fork").Process(
                target=_decode, args=(endpoints, pipe, orders), name="decoder"
            ).start()
        active_children()  # reaps those that have ended


def _decode(endpoints: Mapping[str, Endpoint[Any]], pipe: Connection, orders: socket.socket) -> None:
    """Run a decoder: answer until the server closes its end of the pipe."""
    orders.close()
    while True:
        try:
            path, items, settings = pipe.recv()
            pipe.send(decode_here(endpoints[path], items, settings))
        except (EOFError, OSError):
            return
