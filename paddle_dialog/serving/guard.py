"""Wraps every request: security headers, metrics, the log, and no traceback in an answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paddle_dialog.serving.errors import error_response
from paddle_dialog.serving.log import fault
from paddle_dialog.serving.metrics import Metrics

LOG = logging.getLogger(__name__)
CLIENT_LEFT = 499  # as in nginx's log; nobody receives it
SECURITY_HEADERS = {
    # blob: and data: are pictures that a tab draws for its user to keep.
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """ASGI middleware around all others.

    Args:
        app: the application behind it.
        metrics: counts every request.
        paths: addresses that the metrics name; all others count as one, since clients can invent any number.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: Collection[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers["Cache-Control"] = "no-store"
            await send(message)

        try:
            await self._app(scope, receive, send_guarded)
        except Exception as error:
            fault(LOG, error)
            if not status:
                sentence = "a fault of the server; its log has more"
                await error_response(500, sentence)(scope, receive, send_guarded)
        finally:
            self._note(scope, status or CLIENT_LEFT, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        path = scope["path"] if scope["path"] in self._paths else "other"
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "other"
        self._metrics.requests.labels(path, method, str(status)).inc()
        self._metrics.seconds.labels(path).observe(seconds)
        LOG.info("%s %s %s %.0f ms", method, path, status, seconds * 1000)
