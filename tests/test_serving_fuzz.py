"""The API against requests made from its own description: no fault, and every answer as described."""

import hypothesis
import pytest
import schemathesis
from couplet_toys import LEVEL, OBLIQUE, toy
from schemathesis.specs.openapi.checks import positive_data_acceptance
from serving_toys import eventually, loader, make_app
from test_serving_reply import make_predictor

from paddle_dialog.serving.config import LimitsConfig
from tasks.couplet.api import CoupletEndpoint
from tasks.empathetic.api import ReplyEndpoint

OPERATIONS = [
    ("/v1/couplet", "POST", 25),
    ("/v1/reply", "POST", 25),
    ("/v1/models", "GET", 5),
    ("/healthz", "GET", 5),
    ("/readyz", "GET", 5),
    ("/metrics", "GET", 5),
]


@pytest.fixture(scope="module")
def description():
    limits = LimitsConfig(beam_size=6)
    couplet, reply = CoupletEndpoint(limits), ReplyEndpoint(limits)
    loaders = [loader(couplet, toy(LEVEL + OBLIQUE)), loader(reply, make_predictor())]
    app = make_app(couplet, reply, load=lambda: [card for load in loaders for card in load()])
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


@pytest.mark.parametrize("mode", schemathesis.GenerationMode)
@pytest.mark.parametrize(("path", "method", "count"), OPERATIONS)
def test_no_request_breaks_the_server(description, path, method, count, mode):
    if method == "GET" and mode is not schemathesis.GenerationMode.POSITIVE:
        pytest.skip("there is nothing to send that could be wrong")
    wants_chinese = path == "/v1/couplet" and mode is schemathesis.GenerationMode.POSITIVE
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
        if wants_chinese:
            case.body["first"] = f"春{case.body['first'][:9]}"  # else hardly one of them is Chinese
            case.body.pop("lock", None)
        response = case.call()
        assert response.status_code < 500, response.text
        # A description cannot say which texts a model can answer.
        case.validate_response(response, excluded_checks=[positive_data_acceptance])
        statuses.add(response.status_code)

    check()
    assert (200 if mode is schemathesis.GenerationMode.POSITIVE else 422) in statuses
