"""The API against requests made from its own description: no fault, and what is allowed is taken."""

import json
from contextlib import contextmanager

import hypothesis
import jsonschema_rs
import poem_toys
import pytest
import schemathesis
import test_sentiment
import test_translation
from command import ROOT
from couplet_toys import composing_toy
from schemathesis.specs.openapi.checks import positive_data_acceptance
from serving_toys import app_of
from test_serving_reply import make_predictor

from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.tasks.couplet.task import TASK
from paddle_dialog.tasks.empathetic.api import ReplyEndpoint
from paddle_dialog.tasks.empathetic.task import TASK as EMPATHETIC
from paddle_dialog.tasks.poem.task import TASK as POEM
from paddle_dialog.tasks.sentiment.task import TASK as SENTIMENT
from paddle_dialog.tasks.translation.task import TASK as TRANSLATION

REFUSALS = ROOT / "tests" / "data" / "refusals.tsv"
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


# Refusals of what a text says, or of how it goes with the model or with another field, which no schema can say.
OF_CONTENT = {
    "/v1/couplet": {"line_long", "lock_length"},
    "/v1/compose": {
        *("theme_not_chinese", "theme_long", "themes_many", "theme_no_room", "name_not_chinese", "name_long"),
        *("pattern_size", "pattern_long", "place_outside", "scroll_not_chinese", "scroll_long"),
    },
    "/v1/scroll": set(),
    "/v1/form": set(),
    "/v1/reply": {"emotion_unknown", "language_not_served"},  # an emotion of a model of the other language
    "/v1/poem": {"verse_not_chinese", "acrostic_lines", "beginning_long"},
    "/v1/sentiment": {"review_not_zh", "language_not_served"},
    "/v1/translation": {"text_not_chinese", "sentence_long"},
}


@pytest.fixture(scope="module")
def description():
    limits = LimitsConfig(beam_size=6)
    writer = composing_toy()
    pairs = [*((each, writer) for each in TASK.endpoints(limits)), (ReplyEndpoint(limits), make_predictor())]
    with described(pairs) as found:
        yield found


@pytest.fixture(scope="module")
def unanswered():
    """Yield the description of all that ships, where nothing that is taken is decoded."""
    made = {
        TASK: composing_toy(),
        EMPATHETIC: make_predictor(),
        POEM: poem_toys.toy(),
        SENTIMENT: test_sentiment.predictor(),
        TRANSLATION: test_translation.predictor(),
    }
    limits = LimitsConfig(turns=5, characters=100)
    pairs = [(endpoint, predictor) for task, predictor in made.items() for endpoint in task.endpoints(limits)]
    with described(pairs) as found:
        for endpoint, _ in pairs:
            endpoint.answer = lambda items, settings: [{} for _ in items]
        yield found


@contextmanager
def described(pairs):
    """Yield the description that a server of endpoints and their predictors gives of itself."""
    app = app_of(
        *((predictor, [endpoint]) for endpoint, predictor in pairs), hosts=["testserver", "localhost"]
    )
    app.state.batcher.start()

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


def examples(count):
    """Return the settings of a test of so many requests, the same in every run."""
    return hypothesis.settings(
        deadline=None,
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )


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
    """Return the request with texts that the models can answer."""
    if path == "/v1/form":
        return body
    if path == "/v1/compose":
        return {"theme": "春节", "name": "江月", "count": body.get("count", 1)}
    if path == "/v1/scroll":
        return {**body, "first": "春雨", "second": "秋风"}
    if path == "/v1/couplet":
        return {**body, "first": "春雨", "second": None, "lock": None}
    return {**body, "context": ["i won a prize"], "emotion": None, "language": None}


@pytest.mark.parametrize("mode", schemathesis.GenerationMode)
@pytest.mark.parametrize(("path", "method", "count"), OPERATIONS)
def test_no_request_breaks_the_server(description, path, method, count, mode):
    positive = mode is schemathesis.GenerationMode.POSITIVE
    if method == "GET" and not positive:
        pytest.skip("there is nothing to send that could be wrong")
    statuses = set()

    @examples(count)
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


@pytest.mark.parametrize(("path", "codes"), OF_CONTENT.items())
def test_what_the_description_allows_is_refused_for_its_content_alone(unanswered, path, codes):
    taken = []

    @examples(60)
    @hypothesis.given(case=unanswered[path]["POST"].as_strategy())
    def check(case):
        response = case.call()
        taken.append(response.status_code == 200)
        if response.status_code != 422 or response.json().get("code") not in codes:
            case.validate_response(response, checks=[positive_data_acceptance])

    check()
    assert any(taken)


def test_every_address_of_what_ships_is_among_them(unanswered):
    assert {o.ok().path for o in unanswered.get_all_operations() if o.ok().method == "post"} == {*OF_CONTENT}


FORM, CONTENT = (
    [line.split("\t") for line in part.splitlines() if line and not line.startswith("#")]
    for part in REFUSALS.read_text(encoding="utf-8").split("# Refused for what the text says\n")
)


@pytest.mark.parametrize(("name", "body", "part"), FORM + CONTENT)
def test_a_refusal_is_a_sentence_and_one_of_form_is_in_the_description(unanswered, name, body, part):
    operation, request = unanswered[f"/v1/{name}"]["POST"], json.loads(body)
    response = operation.Case(body=request, media_type="application/json").call()
    assert response.status_code == 422 and part in response.json()["error"], response.text
    body_schema = operation.definition.raw["requestBody"]["content"]["application/json"]["schema"]
    whole = {**body_schema, "components": unanswered.raw_schema["components"]}
    assert jsonschema_rs.is_valid(whole, request) == ([name, body, part] in CONTENT)
