"""The server as a process: its models, its socket, its signals, its end."""

from __future__ import annotations

import json
import math
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from safetensors import safe_open

from paddle_dialog.bundle.folder import WEIGHTS
from paddle_dialog.config.loader import read_config
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.config.typed import build
from paddle_dialog.device import select_device
from paddle_dialog.errors import UserError
from paddle_dialog.processes import can_fork, usable_cores
from paddle_dialog.recipes import (
    Recipe,
    find_recipe,
    find_task,
    find_weights,
    load_model,
    named_recipe,
)
from paddle_dialog.serving.app import ModelCard, create_app
from paddle_dialog.serving.batcher import Decode, ForkServer, ForkServerLost, RemoteDecoder, decode_here
from paddle_dialog.serving.config import ModelSource, ServeConfig
from paddle_dialog.serving.endpoint import Endpoint, WordFilter
from paddle_dialog.serving.telemetry import configure_log
from paddle_dialog.task import Task

_BACKLOG = 2048
_FAILED = 1  # exit status
_LOADING = "the models are being loaded; try again in a moment"


@dataclass(frozen=True)
class ServedModel:
    """A model that can be loaded."""

    task: Task
    recipe: ExperimentConfig  # whose decoding it is served with
    folder: Path
    endpoints: Sequence[Endpoint[Any]]  # where it will answer, the main address first


def load_serve_config(path: str | Path, overrides: Sequence[str] = ()) -> ServeConfig:
    """Read a server's settings."""
    return build(ServeConfig, read_config(find_recipe(path), overrides), str(path))


def find_models(config: ServeConfig) -> tuple[list[ServedModel], list[str]]:
    """Find the bundles of a server's models; return a sentence for each that has none, where none was named."""
    models: list[ServedModel] = []
    missing: list[str] = []
    for name, source in config.models.items():
        if source is None:
            continue
        recipe = _recipe(name, source)
        task, settings = recipe.task, recipe.config()
        endpoints = task.endpoints(config.limits)
        if not endpoints:
            raise UserError(f"models.{name}: this task offers nothing over HTTP; set models.{name}: null")
        try:
            folder = find_weights(recipe)
        except UserError as error:
            if source.weights is not None:
                raise
            missing.append(f"{name} is not served: {error}")
            continue
        if any((task, settings.language) == (other.task, other.recipe.language) for other in models):
            language = f" and the language '{settings.language}'" if settings.language else ""
            sentence = f"another model of the task '{task.name}'{language} is served already; leave one out"
            raise UserError(f"models.{name}: {sentence}")
        models.append(ServedModel(task, settings, folder, endpoints))
    if not models:
        raise UserError("no model to serve: " + "; ".join(missing))
    return models, missing


def load_models(models: Sequence[ServedModel], words: WordFilter, device: str) -> list[ModelCard]:
    """Load models and hand them to their endpoints."""
    select_device(device)
    cards = []
    for model in models:
        predictor = load_model(model.folder, model.task, model.recipe).predictor
        with safe_open(model.folder / WEIGHTS, framework="numpy") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
        cards.append(use_model(predictor, model.endpoints, words, sum(map(math.prod, shapes))))
    return cards


def use_model(
    predictor: Any, endpoints: Sequence[Endpoint[Any]], words: WordFilter, parameters: int = 0
) -> ModelCard:
    """Hand a model to its endpoints, the main one first; return its card."""
    details = {endpoint.path: endpoint.use(predictor, words) for endpoint in endpoints}
    path, *_ = details
    config = predictor.config
    return ModelCard(
        task=config.task,
        path=path,
        family=config.model.name,
        parameters=parameters,
        details=details.pop(path),
        further=details,
    )


def _recipe(name: str, source: ModelSource) -> Recipe:
    """Return what `models.<task>` names, by default the task's recipe, or `models.<task>_<anything>`."""
    config = find_task(name).name if source.config is None is source.weights else source.config
    try:
        recipe = named_recipe(config, source.weights)
    except UserError as error:
        raise UserError(f"models.{name}: {error}") from error
    task, key = recipe.task.name, "config" if source.weights is None else "weights"
    if name != task and not name.startswith(f"{task}_"):
        raise UserError(
            f"models.{name}.{key}: {source.weights or source.config} is of the task '{task}'; "
            f"write it as models.{task}, or a further one as models.{task}_…"
        )
    return recipe


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
            app = create_app(config, endpoints, cards, decoders, device)
            print(f"serving on http://{_address(listener)}", flush=True)
            server, failures = uvicorn.Server(_settings(app, config)), list[Exception]()

            def fail(error: Exception) -> None:
                failures.append(error)
                server.should_exit = True

            app.state.batcher.fail = fail
            watch(fail)
            server.run(sockets=[listener])
    if not failures:
        return 0
    if not isinstance(failures[0], ForkServerLost):
        raise failures[0]
    print(f"error: {failures[0]}", file=sys.stderr)
    return _FAILED


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
