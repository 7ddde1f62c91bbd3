"""The server as an ASGI application: the addresses of its models, the page, and probes."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from pydantic import BaseModel, Field
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse, Response, StreamingResponse

from paddle_dialog.data.files import Record
from paddle_dialog.errors import UserError
from paddle_dialog.serving.batcher import Batcher, Busy, Decode, decode_here
from paddle_dialog.serving.config import ServeConfig
from paddle_dialog.serving.endpoint import Endpoint, Job, of_language
from paddle_dialog.serving.middleware import (
    CLIENT_LEFT,
    ErrorModel,
    RequestChecks,
    RequestLog,
    add_error_handlers,
    error_response,
)
from paddle_dialog.serving.page_files import add_page
from paddle_dialog.serving.telemetry import LOGGER, Metrics

# No `from __future__ import annotations` here: FastAPI needs the request's model, which only exists at run time.

LOG = logging.getLogger(LOGGER)
BANNED = "the text has a word that this server does not take; write it differently"
_STATUSES = {
    400: "The body is not JSON.",
    401: "The key is missing or wrong.",
    405: "The address does not take this method; see Allow.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "A value is out of range, a text cannot be answered, or it has a word that is not taken.",
    500: "A fault of the server.",
    503: "Too many requests wait, or the models are not loaded yet; see Retry-After.",
    504: "The answer took too long.",
}
LINES = "application/x-ndjson"  # a record a line, sent as soon as it is ready, to clients that accept it
_STREAM_HEADERS = {
    "X-Accel-Buffering": "no",
    "Content-Encoding": "identity",
}  # what compresses waits for more
_DESCRIPTION = f"The answer; to Accept: {LINES} what there is of it so far, a line each, and the answer last."
_REFUSED = (UserError, Busy, asyncio.TimeoutError)  # the last is another than the built-in one in Python 3.10
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorModel, "description": text} for status, text in _STATUSES.items()
}


class ModelCard(BaseModel):
    """One model that is served."""

    task: str
    path: str = Field(description="Where it answers.")
    family: str = Field(description="The recipe's model.name.")
    parameters: int = Field(description="Numbers in its weights.")
    details: dict[str, Any] = Field(description="What the task reports of its model, e.g. its limits.")
    further: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="The task's other addresses, each with its own details."
    )


class ModelCards(BaseModel):
    """All of them."""

    models: list[ModelCard]


class State(BaseModel):
    """The state of the server."""

    status: str


def create_app(
    config: ServeConfig,
    endpoints: Sequence[Endpoint[Any]],
    cards: list[ModelCard],
    decoders: Sequence[Decode] = (decode_here,),
    device: str = "auto",
) -> FastAPI:
    """Return the application.

    Args:
        endpoints: that have their models.
        cards: of these models.
        decoders: answer batches, each from a thread of its own.
        device: that the models compute on.
    """
    metrics = Metrics()
    batcher = Batcher(config.batching, metrics, decoders, config.limits.seconds, device)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(batcher.close)

    app = FastAPI(
        title="paddle_dialog",
        version="1",
        servers=[{"url": "."}],  # also below a path of a proxy
        description='What trained models answer. Every error is `{"error": sentence}`.',
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it would send a client to the host that the client names
        lifespan=lifespan,
    )
    app.state.batcher, app.state.metrics = batcher, metrics
    add_error_handlers(app)
    # Checked by `RequestChecks`; these describe it.
    bearer, header = HTTPBearer(auto_error=False), APIKeyHeader(name="X-API-Key", auto_error=False)
    keys = [Security(bearer), Security(header)] if config.api_key else []
    addresses: dict[str, dict[str | None, Endpoint[Any]]] = {}
    for endpoint in endpoints:
        addresses.setdefault(endpoint.path, {})[endpoint.language] = endpoint
    for of_address in addresses.values():
        _add_address(app, of_address, config, batcher, keys)
    _add_probes(app, cards, metrics, keys)
    add_page(app, {e.task: e.page for e in endpoints if e.page is not None})
    paths = [path for route in app.routes if (path := getattr(route, "path", ""))]
    app.add_middleware(RequestChecks, config=config, posts=addresses)
    if config.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=config.origins, allow_methods=["GET", "POST"], allow_headers=["*"]
        )
    app.add_middleware(GZipMiddleware, minimum_size=1000)
    app.add_middleware(RequestLog, metrics=metrics, paths=paths)
    return app


def _add_probes(app: FastAPI, cards: list[ModelCard], metrics: Metrics, keys: list[Any]) -> None:
    @app.get(
        "/v1/models",
        dependencies=keys,
        summary="The models that are served",
        response_model=ModelCards,
        responses={status: ERRORS[status] for status in (401, 405, 503)},
    )
    async def models() -> Response:
        return JSONResponse(ModelCards(models=cards).model_dump())

    @app.get(
        "/healthz", summary="Whether the process answers", response_model=State, responses={405: ERRORS[405]}
    )
    async def healthz() -> Response:
        return JSONResponse({"status": "ok"})

    @app.get(
        "/readyz",
        summary="Whether the models are loaded",
        response_model=State,
        responses={status: ERRORS[status] for status in (405, 503)},
    )
    async def readyz() -> Response:
        return JSONResponse({"status": "ready"})  # a server that loads them has no application yet

    @app.get(
        "/metrics",
        dependencies=keys,
        summary="Counters for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, 401: ERRORS[401], 405: ERRORS[405]},
    )
    async def prometheus() -> Response:
        return Response(metrics.text(), headers={"Content-Type": CONTENT_TYPE})


def _add_address(
    app: FastAPI,
    endpoints: Mapping[str | None, Endpoint[Any]],
    config: ServeConfig,
    batcher: Batcher,
    keys: list[Any],
) -> None:
    """Add an address, where models of several languages may answer."""
    any_endpoint = next(iter(endpoints.values()))
    model, seconds = any_endpoint.request_model, config.limits.seconds

    async def handle(body: model, request: Request) -> Response:  # type: ignore[valid-type]
        if config.log_user_text:
            LOG.info("%s %s", any_endpoint.path, json.dumps(body.model_dump(), ensure_ascii=False))  # type: ignore[attr-defined]
        try:
            endpoint = of_language(endpoints, body)
            is_banned = any(endpoint.words.finds(text) for text in endpoint.texts(body))
            if is_banned and not endpoint.takes_any_words(body):
                return error_response(422, BANNED, None, "banned_given")
            in_parts = LINES in request.headers.get("accept", "")
            records = _records(batcher, endpoint.prepare(body), endpoint, request, seconds, in_parts)
            if (first := await anext(records, None)) is None:
                return Response(status_code=CLIENT_LEFT)
        except _REFUSED as error:
            return _refusal(error, seconds)
        if in_parts:
            return StreamingResponse(_lines(first, records, seconds), 200, _STREAM_HEADERS, LINES)
        await records.aclose()
        return JSONResponse(first)

    app.post(
        any_endpoint.path,
        dependencies=keys,
        summary=any_endpoint.summary,
        description=any_endpoint.__doc__,
        operation_id=any_endpoint.path.removeprefix("/v1/"),
        responses={200: {"model": any_endpoint.answer_model, "description": _DESCRIPTION}, **ERRORS},
        response_class=JSONResponse,
        response_model=None,
    )(handle)


def _refusal(error: Exception, seconds: float) -> JSONResponse:
    if isinstance(error, UserError):
        return error_response(422, str(error), None, error.code, error.values)
    if isinstance(error, Busy):
        return error_response(503, str(error), {"Retry-After": str(error.retry_after)})
    return error_response(504, f"there was no answer within {seconds:g} seconds; ask for less, or later")


async def _lines(first: Record, records: AsyncIterator[Record], seconds: float) -> AsyncIterator[bytes]:
    """Yield records as lines of JSON, and at last why the answer stays unfinished, if it does."""
    yield bytes(JSONResponse(first).body) + b"\n"
    try:
        async for record in records:
            yield bytes(JSONResponse(record).body) + b"\n"
    except _REFUSED as error:
        yield bytes(_refusal(error, seconds).body) + b"\n"


async def _records(
    batcher: Batcher, job: Job, endpoint: Endpoint[Any], request: Request, seconds: float, in_parts: bool
) -> AsyncGenerator[Record, None]:
    """Yield the parts of an answer that are wanted, and the answer; no more once the client has left.

    Raises a `TimeoutError` after so many seconds.
    """
    loop, parts = asyncio.get_running_loop(), asyncio.Queue[Record | None]()
    end = loop.time() + seconds
    work = asyncio.ensure_future(batcher.submit(endpoint, job, parts.put_nowait if in_parts else None))
    leaving = asyncio.ensure_future(_client_leaves(request))
    for task in (work, leaving):
        task.add_done_callback(lambda _: parts.put_nowait(None))
    try:
        while (part := await asyncio.wait_for(parts.get(), end - loop.time())) is not None:
            yield part
        if work.done():
            yield work.result()
    finally:
        for task in (work, leaving):
            task.cancel()


async def _client_leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
