"""Checks before a request is read: the key, JSON, and a body of bounded size in bounded time."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable

import anyio
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.errors import error_response

_GUARDED = ("/v1/", "/metrics")


class Gate:
    """ASGI middleware in front of the addresses.

    Args:
        app: the application behind it.
        limits: of a body.
        api_key: asked for as `Authorization: Bearer` or `X-API-Key`; None asks for none.
        posts: the addresses that take a body; others refuse the method.
    """

    def __init__(
        self, app: ASGIApp, limits: LimitsConfig, api_key: str | None, posts: Collection[str]
    ) -> None:
        self._app = app
        self._limits = limits
        self._posts = frozenset(posts)
        self._key = api_key.encode("utf-8") if api_key else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        body = b""
        if refusal is None:
            try:
                with anyio.fail_after(self._limits.seconds):
                    read = await self._read(receive)
            except TimeoutError:
                refusal = error_response(408, "the body of the request came too slowly")
            else:
                if read is None:
                    return  # the client left before it had sent all
                body = read
                refusal = self._too_large() if len(body) > self._limits.body_bytes else None
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _with_body(body, receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if self._key is not None and scope["path"].startswith(_GUARDED) and not self._has_key(headers):
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
        return any([hmac.compare_digest(_header_bytes(key), self._key) for key in offered])  # noqa: C419 - compares all, in equal time

    def _too_large(self) -> Response:
        return error_response(413, f"the body is larger than {self._limits.body_bytes:,} bytes; send less")

    async def _read(self, receive: Receive) -> bytes | None:
        """Read the body and stop where it is too large; None if the client left."""
        parts: list[bytes] = []
        while sum(map(len, parts)) <= self._limits.body_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        return b"".join(parts)


def _is_json(content_type: str) -> bool:
    kind, _, parameters = content_type.lower().partition(";")
    return kind.strip() == "application/json" and _is_utf8(parameters.split(";"))


def _is_utf8(parameters: Iterable[str]) -> bool:
    charsets = [p.partition("=")[2].strip(" \"'") for p in parameters if p.strip().startswith("charset")]
    return all(charset in ("utf-8", "utf8") for charset in charsets)


def _header_bytes(value: str) -> bytes:
    return value.encode("latin-1")  # as the header arrived


def _with_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body already read, then waits for the client to leave."""
    pending = True

    async def replay() -> Message:
        nonlocal pending
        if pending:
            pending = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay
