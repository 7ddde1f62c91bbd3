"""The server as a process: its socket, its signals, its end."""

from __future__ import annotations

import signal
import socket
import sys
from typing import Any

import uvicorn

from paddle_dialog.errors import UserError
from paddle_dialog.serving.app import create_app
from paddle_dialog.serving.config import ServeConfig
from paddle_dialog.serving.log import configure_log
from paddle_dialog.serving.models import find_models, load_models
from paddle_dialog.serving.word_filter import WordFilter

_BACKLOG = 2048


def serve(config: ServeConfig, device: str = "auto") -> None:
    """Serves until SIGTERM or SIGINT, then answers what was accepted and returns.

    Args:
        config: the settings.
        device: where the models run, see `paddle_dialog.device.select_device`.

    Raises:
        UserError: a model, the words or the address cannot be used.
    """
    # Paddle takes the signals for itself when it is imported, which must not happen while the server runs.
    import paddle  # noqa: F401

    # The end that SIGTERM asks for is a good one; uvicorn raises the signal anew when all is answered.
    signal.signal(signal.SIGTERM, _leave)
    words = WordFilter.load(config.banned_words)
    found, missing = find_models(config)
    for sentence in missing:
        print(sentence, file=sys.stderr)
    for model in found:
        print(f"{model.task.name}: weights {model.folder}", file=sys.stderr)
    configure_log()
    app = create_app(
        config, [model.endpoint for model in found], lambda: load_models(found, words, device), words
    )
    with _listen(config.host, config.port) as listener:
        print(f"serving on http://{_address(listener)}", flush=True)
        server = uvicorn.Server(_settings(app, config))
        app.state.batcher.on_failure = lambda: setattr(server, "should_exit", True)
        server.run(sockets=[listener])
    failure = app.state.batcher.failure
    if failure is not None:
        raise failure


def _leave(*_: object) -> None:
    raise SystemExit(0)


def _settings(app: Any, config: ServeConfig) -> uvicorn.Config:
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
    except OSError as error:
        listener.close()
        raise UserError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}; "
            "choose others with -o host=… -o port=… (0 takes a free port)"
        ) from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
