"""A server around an endpoint that needs no model, and helpers for those that do."""

import json
import threading
import time
import warnings
from contextlib import contextmanager

from pydantic import BaseModel, Field

from paddle_dialog.errors import UserError
from paddle_dialog.serving.app import create_app
from paddle_dialog.serving.config import BatchingConfig, LimitsConfig, ServeConfig
from paddle_dialog.serving.endpoint import Endpoint, Job, RequestModel, Text, WordFilter
from paddle_dialog.serving.server import use_model

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would like a successor of httpx
    from fastapi.testclient import TestClient


BASE_URL = "http://127.0.0.1"
PATIENCE = 120.0  # seconds; on an idle machine nothing here takes one


class EchoRequest(RequestModel):
    """A text to send back."""

    text: Text = Field(min_length=1)
    style: int = Field(0, ge=0, le=3)


class EchoAnswer(BaseModel):
    """The text."""

    echo: str


class EchoEndpoint(Endpoint[EchoRequest]):
    """Sends a text back; "bad" is refused, "fault" breaks the program, "spoil" is found out late."""

    task, path, summary = "echo", "/v1/echo", "An echo"
    request_model, answer_model = EchoRequest, EchoAnswer

    def __init__(self):
        super().__init__(LimitsConfig())
        self.batches: list[list[str]] = []
        self.open = threading.Event()  # decoding waits for it
        self.open.set()
        self.busy = threading.Event()  # decoding has begun

    def prepare(self, request):
        if request.text == "bad":
            raise UserError("bad is not a text; give a good one")
        return Job(request.text, request.style)

    def answer(self, items, settings):
        self.batches.append(list(items))
        self.busy.set()
        assert self.open.wait(PATIENCE)
        if "fault" in items:
            raise RuntimeError(f"secret /etc/passwd of {items}")
        if "spoil" in items:
            raise UserError("/srv/words.txt: no such file")
        return [{"echo": item} for item in items]


def make_config(**settings):
    """Return settings of a test."""
    batching = BatchingConfig(**settings.pop("batching", {}))
    limits = LimitsConfig(**{"seconds": PATIENCE, **settings.pop("limits", {})})
    return ServeConfig(batching=batching, limits=limits, **settings)


def make_app(*endpoints, cards=(), **settings):
    """Return the application around endpoints that have their models."""
    return create_app(make_config(**settings), endpoints, list(cards))


def app_of(*models, words=None, **settings):
    """Return the application of predictors, each with the endpoints of its task."""
    words = words or WordFilter()
    cards = [use_model(predictor, endpoints, words) for predictor, endpoints in models]
    every = [endpoint for _, endpoints in models for endpoint in endpoints]
    return make_app(*every, cards=cards, **settings)


def served(predictor, *endpoints, words=None):
    """Return the running server of a predictor behind addresses of its task, as a context with its client."""
    return running(app_of((predictor, endpoints), words=words))


def post(client, path, **request):
    """Return status and answer of a request, whose text may have what UTF-8 cannot."""
    headers = {"Content-Type": "application/json"}
    response = client.post(f"/v1/{path}", content=json.dumps(request), headers=headers)
    return response.status_code, response.json()


@contextmanager
def running(app):
    """Yield a client of the application."""
    with TestClient(app, base_url=BASE_URL, raise_server_exceptions=True) as client:
        yield client


def eventually(holds, seconds=PATIENCE):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.005)


def refusal(response, status):
    """Return the sentence of an error, whose form is checked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    (key, sentence), *more = response.json().items()
    assert key == "error" and [key for key, _ in more] in ([], ["code", "values"])
    assert sentence and "\n" not in sentence and "Traceback" not in sentence
    return sentence
