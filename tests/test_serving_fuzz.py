"""The API against requests made from its own description: no fault, and every answer as described."""

import hypothesis
import pytest
import schemathesis
from composing_toys import composing_toy
from schemathesis.specs.openapi.checks import positive_data_acceptance
from serving_toys import eventually, loader, make_app
from test_serving_reply import make_predictor

from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.tasks.couplet.task import TASK
from paddle_dialog.tasks.empathetic.api import ReplyEndpoint

OPERATIONS = [
    ("/v1/couplet", "POST", 25),
    ("/v1/compose", "POST", 15),
    ("/v1/scroll", "POST", 15),
    ("/v1/form", "POST", 15),
    ("/v1/reply", "POST", 25),
    ("/v1/models", "GET", 5),
    ("/healthz", "GET", 5),
    ("/readyz", "GET", 5),
    ("/metrics", "GET", 5),
]


@pytest.fixture(scope="module")
def description():
    limits = LimitsConfig(beam_size=6)
    couplets, reply, writer = TASK.endpoints(limits), ReplyEndpoint(limits), composing_toy()
    loaders = [*(loader(endpoint, writer) for endpoint in couplets), loader(reply, make_predictor())]
    app = make_app(
        *couplets,
        reply,
        load=lambda: [card for load in loaders for card in load()],
        hosts=["testserver", "localhost"],
    )
    app.state.batcher.start()
    eventually(lambda: app.state.batcher.is_ready)

    async def already_started(scope, receive, send):  # schemathesis would start and stop it for each request
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
        else:
            await app(scope, receive, send)

    yield schemathesis.openapi.from_asgi("/openapi.json", already_started)
    app.state.batcher.close()


def test_every_operation_is_fuzzed(description):
    described = {(o.ok().path, o.ok().method.upper()) for o in description.get_all_operations()}
    assert described == {(path, method) for path, method, _ in OPERATIONS}


def nearly_in_order(path, body):
    """Return the request with words of a language in its texts, which hardly any generated one has."""
    if path == "/v1/couplet":
        line = body.get("first") or body.get("second") or ""
        return {**body, "first": f"春{line[:9]}", "second": None, "lock": None}
    if path == "/v1/compose":
        return {**body, "theme": f"春节 {body.get('theme', '')[:2]}", "pattern": None}
    if path in ("/v1/scroll", "/v1/form"):
        return {**body, "first": f"春{body['first'][:9]}", "second": f"秋{body['second'][:9]}"}
    turns = [f"i {turn[:20]}" for turn in body["context"]]
    return {**body, "context": turns[: len(turns) - 1 + len(turns) % 2], "emotion": None}


def in_order(path, body):
    """Return the request with texts that the models can answer and without settings that may contradict each other.

    JSON's 2.0 is an integer to its schemas, but not to the server, which converts nothing.
    """
    if path == "/v1/form":
        return body
    if path == "/v1/compose":
        return {"theme": "春节", "name": "江月", "count": int(body.get("count", 1))}
    body = {**body, "n_best": int(body.get("n_best", 1))}
    if path == "/v1/scroll":
        return {**body, "first": "春雨", "second": "秋风"}
    if path == "/v1/couplet":
        return {**body, "first": "春雨", "second": None, "lock": None}
    return {**body, "context": ["i won a prize"], "emotion": None, "decoding": None}


@pytest.mark.parametrize("mode", schemathesis.GenerationMode)
@pytest.mark.parametrize(("path", "method", "count"), OPERATIONS)
def test_no_request_breaks_the_server(description, path, method, count, mode):
    positive = mode is schemathesis.GenerationMode.POSITIVE
    if method == "GET" and not positive:
        pytest.skip("there is nothing to send that could be wrong")
    statuses = set()

    @hypothesis.settings(
        deadline=None,
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=description[path][method].as_strategy(generation_mode=mode))
    def check(case):
        def status():
            response = case.call()
            assert response.status_code < 500, response.text
            # A description cannot say which texts a model can answer.
            case.validate_response(response, excluded_checks=[positive_data_acceptance])
            return response.status_code

        statuses.add(status())
        if positive and method == "POST":
            generated = case.body
            case.body = nearly_in_order(path, generated)
            status()
            case.body = in_order(path, generated)
            assert status() == 200, case.body

    check()
    if not positive:
        assert 422 in statuses
    elif method == "GET":
        assert statuses == {200}
