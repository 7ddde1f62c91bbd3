"""The addresses that answer requests to the models."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from paddle_dialog.serving.batcher import Batcher, Busy
from paddle_dialog.serving.config import ServeConfig
from paddle_dialog.serving.endpoint import Endpoint, Job, Unanswerable
from paddle_dialog.serving.errors import ErrorModel, busy_response, error_response
from paddle_dialog.serving.guard import CLIENT_LEFT
from paddle_dialog.serving.log import LOGGER
from paddle_dialog.serving.word_filter import WordFilter

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
LOADING = "the models are being loaded; try again in a moment"
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorModel, "description": text} for status, text in _STATUSES.items()
}


@dataclass(frozen=True)
class Service:
    """What answering needs.

    Args:
        config: the server's settings.
        batcher: decodes.
        words: refused in input.
    """

    config: ServeConfig
    batcher: Batcher
    words: WordFilter


def add_endpoints(app: FastAPI, endpoints: Sequence[Endpoint[Any]], service: Service) -> None:
    """Add the `POST` address of each endpoint."""
    for endpoint in endpoints:
        _add_endpoint(app, endpoint, service)


def _add_endpoint(app: FastAPI, endpoint: Endpoint[Any], service: Service) -> None:
    model = endpoint.request_model

    async def handle(body: model, request: Request) -> Response:  # type: ignore[valid-type]
        return await _answer(endpoint, body, request, service)

    app.post(
        endpoint.path,
        summary=endpoint.summary,
        description=endpoint.__doc__,
        operation_id=endpoint.path.removeprefix("/v1/"),
        responses={200: {"model": endpoint.answer_model, "description": "The answer."}, **ERRORS},
        response_class=JSONResponse,
        response_model=None,
    )(handle)


async def _answer(endpoint: Endpoint[Any], body: BaseModel, request: Request, service: Service) -> Response:
    if not service.batcher.is_ready:
        return busy_response(LOADING, 1)
    if service.config.log_user_text:
        LOG.info("%s %s", endpoint.path, json.dumps(body.model_dump(), ensure_ascii=False))
    try:
        is_banned = any(service.words.finds(text) for text in endpoint.texts(body))
        if is_banned and not endpoint.takes_any_words(body):
            return error_response(422, BANNED)
        job = endpoint.prepare(body)
        record = await _wait(endpoint, job, request, service)
    except (UserError, Unanswerable) as error:
        return error_response(422, str(error))
    except Busy as busy:
        return busy_response(str(busy), busy.retry_after)
    except asyncio.TimeoutError:  # not the built-in one in Python 3.10
        seconds = service.config.limits.seconds
        return error_response(504, f"there was no answer within {seconds:g} seconds; ask for less, or later")
    return Response(status_code=CLIENT_LEFT) if record is None else JSONResponse(record)


async def _wait(endpoint: Endpoint[Any], job: Job, request: Request, service: Service) -> Record | None:
    """Return the answer to a job; None if the client leaves first.

    Raises:
        TimeoutError: the time for a request is over.
    """
    work = asyncio.ensure_future(service.batcher.submit(endpoint, job))
    leaving = asyncio.ensure_future(_client_leaves(request))
    try:
        done, _ = await asyncio.wait(
            {work, leaving}, timeout=service.config.limits.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if work in done:
            return work.result()
        if leaving in done:
            return None
        raise asyncio.TimeoutError
    finally:
        for task in (work, leaving):
            task.cancel()


async def _client_leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
