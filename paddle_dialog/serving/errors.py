"""Errors as JSON: `{"error": "one plain sentence"}`."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

_SENTENCES = {
    404: "there is nothing at this address; GET /openapi.json tells what there is",
    405: "this address does not take this method; see the Allow header",
}


class ErrorModel(BaseModel):
    """An error's JSON."""

    error: str = Field(description="One plain sentence: what is wrong, and what would be right.")


def error_response(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return an error as JSON."""
    return JSONResponse({"error": sentence}, status, headers)


def busy_response(sentence: str, retry_after: int) -> JSONResponse:
    """Return the answer of a server that cannot take the request now."""
    return error_response(503, sentence, {"Retry-After": str(retry_after)})


def add_error_handlers(app: FastAPI) -> None:
    """Give the framework's own errors the form of all others."""

    @app.exception_handler(HTTPException)
    async def _of_http(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:
            return error_response(400, "the body is not JSON in UTF-8")
        sentence = _SENTENCES.get(error.status_code, HTTPStatus(error.status_code).phrase.lower())
        return error_response(error.status_code, sentence, error.headers)

    @app.exception_handler(RequestValidationError)
    async def _of_validation(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return error_response(400, "the body is not JSON in UTF-8")
        where = ".".join(str(part) for part in first["loc"][1:]) or "the body"
        what = str(first["msg"])
        return error_response(422, f"{where[:80]}: {what[:1].lower()}{what[1:]}")
