"""The server as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.responses import HTMLResponse, JSONResponse, Response

from paddle_dialog.serving.batcher import Batcher
from paddle_dialog.serving.config import ServeConfig
from paddle_dialog.serving.decoders import Decode, decode_here
from paddle_dialog.serving.docs_page import STYLE, docs_page
from paddle_dialog.serving.endpoint import Endpoint
from paddle_dialog.serving.errors import add_error_handlers, busy_response
from paddle_dialog.serving.gate import Gate
from paddle_dialog.serving.guard import Guard
from paddle_dialog.serving.metrics import CONTENT_TYPE, Metrics
from paddle_dialog.serving.model_cards import ModelCard, ModelCards
from paddle_dialog.serving.page_files import add_page
from paddle_dialog.serving.routes import ERRORS, LOADING, Service, add_endpoints
from paddle_dialog.serving.word_filter import WordFilter


class State(BaseModel):
    """The state of the server."""

    status: str


def create_app(
    config: ServeConfig,
    endpoints: Sequence[Endpoint[Any]],
    load: Callable[[], list[ModelCard]],
    words: WordFilter,
    decoders: Sequence[Decode] = (decode_here,),
) -> FastAPI:
    """Return the application; its models are loaded when it starts.

    Args:
        config: the server's settings.
        endpoints: of the tasks it serves.
        load: makes the endpoints ready, in the thread that will run them, and returns the cards of their models.
        words: refused in input.
        decoders: see `Batcher`.

    Returns:
        The application; `state.batcher` is its `Batcher` and `state.metrics` its `Metrics`.
    """
    cards, metrics = list[ModelCard](), Metrics()
    batcher = Batcher(config.batching, metrics, lambda: cards.extend(load()), decoders)

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
        description='What trained models answer. Every error is `{"error": sentence}`.',
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.batcher, app.state.metrics = batcher, metrics
    add_error_handlers(app)
    add_endpoints(app, endpoints, Service(config, batcher, words))
    _add_models(app, batcher, cards)
    _add_probes(app, batcher, metrics)
    _add_docs(app)
    add_page(app, {e.task: e.page for e in endpoints if e.page is not None})
    paths = [path for route in app.routes if (path := getattr(route, "path", ""))]
    posts = [endpoint.path for endpoint in endpoints]
    app.add_middleware(Gate, limits=config.limits, api_key=config.api_key, posts=posts)
    app.add_middleware(Guard, metrics=metrics, paths=paths)
    return app


def _add_models(app: FastAPI, batcher: Batcher, cards: list[ModelCard]) -> None:
    @app.get(
        "/v1/models",
        summary="The models that are served",
        response_model=ModelCards,
        responses={status: ERRORS[status] for status in (401, 405, 503)},
    )
    async def models() -> Response:
        if not batcher.is_ready:
            return busy_response(LOADING, 1)
        return JSONResponse(ModelCards(models=cards).model_dump())


def _add_probes(app: FastAPI, batcher: Batcher, metrics: Metrics) -> None:
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
        return JSONResponse({"status": "ready"}) if batcher.is_ready else busy_response(LOADING, 1)

    @app.get(
        "/metrics",
        summary="Counters for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, 401: ERRORS[401], 405: ERRORS[405]},
    )
    async def prometheus() -> Response:
        return Response(metrics.text(), headers={"Content-Type": CONTENT_TYPE})


def _add_docs(app: FastAPI) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(docs_page(app.openapi()))

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(STYLE, media_type="text/css")
