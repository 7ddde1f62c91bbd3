"""Checks of every request, the log of every answer, and errors as JSON.

Every error is `{"error": "one plain sentence"}`.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Collection, Mapping
from http import HTTPStatus

import anyio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paddle_dialog.serving.config import ServeConfig
from paddle_dialog.serving.telemetry import Metrics, log_exception

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
_WITH_KEY = ("/v1/", "/metrics")
_SENTENCES = {
    404: "there is nothing at this address; GET /openapi.json tells what there is",
    405: "this address does not take this method; see the Allow header",
}


class ErrorModel(BaseModel):
    """An error's JSON."""

    error: str = Field(description="One plain sentence: what is wrong, and what would be right.")
    code: str | None = Field(None, description="Its name, where a page may say it in words of its own.")
    values: dict[str, str | int] | None = Field(None, description="What those words need.")


def error_response(
    status: int,
    sentence: str,
    headers: Mapping[str, str] | None = None,
    code: str | None = None,
    values: Mapping[str, str | int] | None = None,
) -> JSONResponse:
    """Return an error as JSON."""
    named = {} if code is None else {"code": code, "values": values or {}}
    return JSONResponse({"error": sentence, **named}, status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Give the framework's own errors the form of all others."""

    @app.exception_handler(HTTPException)
    async def _http_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:
            return error_response(400, "the body is not JSON in UTF-8")
        sentence = _SENTENCES.get(error.status_code, HTTPStatus(error.status_code).phrase.lower())
        return error_response(error.status_code, sentence, error.headers)

    @app.exception_handler(RequestValidationError)
    async def _validation_error(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return error_response(400, "the body is not JSON in UTF-8")
        where = ".".join(str(part) for part in first["loc"][1:]) or "the body"
        what = str(first["msg"]).removeprefix("Value error, ")
        sentence = f"{where[:80]}: {what[:1].lower()}{what[1:]}"
        if first["type"] == "string_too_long":
            return error_response(422, sentence, None, "text_long", {"limit": first["ctx"]["max_length"]})
        return error_response(422, sentence)


class RequestChecks:
    """ASGI middleware that checks a request before it is read: the key, JSON, a bounded body in bounded time.

    Args:
        config: the limits of a body, the names that the server is called by, and the key that it asks for as
            `Authorization: Bearer` or `X-API-Key`.
        posts: the addresses that take a body; others refuse the method.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig, posts: Collection[str]) -> None:
        self._app = app
        self._limits = config.limits
        self._posts = frozenset(posts)
        self._hosts = config.allowed_hosts
        self._key = config.api_key.encode("utf-8") if config.api_key else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = b""
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is None:
            try:
                with anyio.fail_after(self._limits.seconds):
                    async for part in Request(scope, receive).stream():
                        body += part
                        if len(body) > self._limits.body_bytes:
                            refusal = self._too_large()
                            break
            except TimeoutError:
                refusal = error_response(408, "the body of the request came too slowly")
            except ClientDisconnect:  # before it had sent all
                return
        answer = self._app if refusal is None else refusal
        await answer(scope, _with_body(body, receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the error that the headers of a request deserve, if any."""
        if self._hosts is not None and host_name(headers.get("host", "")) not in self._hosts:
            return error_response(400, "this server is not called by that name; see hosts in its settings")
        if self._key is not None and scope["path"].startswith(_WITH_KEY) and not self._has_key(headers):
            sentence = "this server asks for a key; send it as Authorization: Bearer KEY, or as X-API-Key"
            return error_response(401, sentence, {"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18:
            return error_response(400, "Content-Length is not a number")
        if int(length) > self._limits.body_bytes:
            return self._too_large()
        takes_json = scope["method"] == "POST" and scope["path"] in self._posts
        if takes_json and not _is_json(headers.get("content-type", "")):
            return error_response(415, "the body must be JSON; send Content-Type: application/json")
        return None

    def _has_key(self, headers: Headers) -> bool:
        assert self._key is not None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        offered = [headers.get("x-api-key", ""), token.strip() if scheme.lower() == "bearer" else ""]
        sent = [key.encode("latin-1") for key in offered]  # as the headers arrived
        return any([hmac.compare_digest(key, self._key) for key in sent])  # noqa: C419 - compares all, in equal time

    def _too_large(self) -> Response:
        sentence = f"the body is larger than {self._limits.body_bytes:,} bytes; send less"
        return error_response(413, sentence, None, "body_large")


def host_name(host: str) -> str:
    """Return the name of a `Host` header, without its port."""
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() and name else host).strip("[]").lower()


def _is_json(content_type: str) -> bool:
    """Return whether a body is declared as JSON, in UTF-8 if an encoding is named."""
    kind, _, parameters = content_type.lower().partition(";")
    named = [p.partition("=")[2] for p in parameters.split(";") if p.strip().startswith("charset")]
    return kind.strip() == "application/json" and {c.strip(" \"'") for c in named} <= {"utf-8", "utf8"}


def _with_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body already read, then waits for the client to leave."""
    first = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


class RequestLog:
    """ASGI middleware around all others: security headers, metrics, the log, and no traceback in an answer.

    Args:
        paths: addresses that the metrics name; all others count as one, since clients can invent any number.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: Collection[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, send_guarded)
        except Exception as error:
            log_exception(LOG, error)
            if not status:
                sentence = "a fault of the server; its log has more"
                await error_response(500, sentence)(scope, receive, send_guarded)
        finally:
            self._record(scope, status or CLIENT_LEFT, time.perf_counter() - started)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        path = scope["path"] if scope["path"] in self._paths else "other"
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "other"
        self._metrics.requests.labels(path, method, str(status)).inc()
        self._metrics.seconds.labels(path).observe(seconds)
        LOG.info("%s %s %s %.0f ms", method, path, status, seconds * 1000)
