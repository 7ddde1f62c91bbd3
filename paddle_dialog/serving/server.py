"""The server as a process: its socket, its signals, its end."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import uvicorn
from fastapi import FastAPI

from paddle_dialog.errors import UserError
from paddle_dialog.processes import can_fork, usable_cores
from paddle_dialog.serving.app import create_app
from paddle_dialog.serving.config import ServeConfig
from paddle_dialog.serving.decoders import Decode, ForkServer, ForkServerLost, RemoteDecoder, decode_here
from paddle_dialog.serving.endpoint import Endpoint, WordFilter
from paddle_dialog.serving.models import find_models, load_models
from paddle_dialog.serving.telemetry import configure_log

_BACKLOG = 2048
_FAILED = 1  # exit status
_LOADING = "the models are being loaded; try again in a moment"


def serve(config: ServeConfig, device: str = "auto") -> int:
    """Serve until SIGTERM or SIGINT, then answer what was accepted; return the exit status."""
    # Ending on SIGTERM is success; uvicorn raises the signal again when all is answered.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    words = WordFilter.load(config.banned_words)
    models, missing = find_models(config)
    for sentence in missing:
        print(sentence, file=sys.stderr)
    for model in models:
        print(f"{model.task.name}: weights {model.folder}", file=sys.stderr)
    configure_log()
    if config.listens_everywhere and not config.api_key:
        print(
            f"host {config.host} without api_key: everyone who reaches this machine may ask", file=sys.stderr
        )
    with _listen(config.host, config.port) as listener:
        # Import Paddle now, before the server runs: importing it replaces the signal handlers.
        with _answering(listener):
            cards = load_models(models, words, device)
        endpoints = [endpoint for model in models for endpoint in model.endpoints]
        with _decoders(config, endpoints, listener) as (decoders, watch):
            app = create_app(config, endpoints, cards, words, decoders, device)
            print(f"serving on http://{_address(listener)}", flush=True)
            server = uvicorn.Server(_settings(app, config))
            app.state.batcher.on_failure = lambda: setattr(server, "should_exit", True)
            watch(app.state.batcher.fail)
            server.run(sockets=[listener])
    failure = app.state.batcher.failure
    if isinstance(failure, ForkServerLost):
        print(f"error: {failure}", file=sys.stderr)
        return _FAILED
    if failure is not None:
        raise failure
    return 0


@contextmanager
def _answering(listener: socket.socket) -> Iterator[None]:
    """Answer probes, and refuse everything else, in a thread while the models are loaded."""
    server = HTTPServer(listener.getsockname()[:2], _Loading, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="loading")
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


class _Loading(BaseHTTPRequestHandler):
    """What a server answers before its models are loaded."""

    timeout = 1.0  # seconds for a client to send its request

    def do_GET(self) -> None:
        alive = self.path == "/healthz"
        self.send_response(200 if alive else 503)
        if not alive:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"status": "ok"} if alive else {"error": _LOADING}).encode())

    do_POST = do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def _decoders(
    config: ServeConfig, endpoints: Sequence[Endpoint[Any]], listener: socket.socket
) -> Iterator[tuple[Sequence[Decode], Callable[[Callable[[Exception], None]], None]]]:
    """Start the decoders, processes where possible, and end them after the `with` block.

    Yields:
        The decoders, and a function that has another one called where no more of them can be made.
    """
    count = usable_cores() if config.workers is None else config.workers
    if count > 1 and not can_fork():
        print("decoding in one thread: several processes need Linux and models in NumPy", file=sys.stderr)
        count = 1
    if count == 1:
        yield [decode_here], lambda fail: None
        return
    fork_server = ForkServer(endpoints, listener)
    decoders = [RemoteDecoder(fork_server, config.limits.seconds) for _ in range(count)]
    try:
        yield decoders, fork_server.watch
    finally:
        for decoder in decoders:
            decoder.close()
        fork_server.close()


def _settings(app: FastAPI, config: ServeConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(config.limits.seconds) + 5,
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, TypeError) as error:  # TypeError: a name that no host can have
        listener.close()
        raise UserError(
            f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', None) or error}; "
            "choose others with -o host=… -o port=… (0 takes a free port)"
        ) from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
