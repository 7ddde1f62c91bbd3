"""The server's answers: sentences for errors, headers that bind the browser, the key, probes."""

import logging
import threading

import pytest
from serving_toys import PATIENCE, EchoEndpoint, TestClient, eventually, make_app, refusal, running

from paddle_dialog.serving.guard import SECURITY_HEADERS
from paddle_dialog.serving.word_filter import WordFilter

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def endpoint():
    return EchoEndpoint()


def test_an_answer_and_its_headers(endpoint):
    with running(make_app(endpoint)) as client:
        for response in (
            client.post("/v1/echo", json={"text": "<script>"}),
            client.get("/nothing"),
            client.get("/docs"),
        ):
            assert {name: response.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
            assert "server" not in response.headers
        answer = client.post("/v1/echo", json={"text": "<script>"})
    assert answer.json() == {"echo": "<script>"}
    assert answer.headers["content-type"] == "application/json"  # with nosniff, never a page
    assert "script-src" not in SECURITY_HEADERS["Content-Security-Policy"]  # so default-src 'self' decides
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "part"),
    [
        (b'{"text": "a"', JSON, 400, "not JSON"),
        (b'{"text": "\xff"}', JSON, 400, "not JSON"),
        (b"[" * 40_000, JSON, 400, "not JSON"),
        (b'{"text": "a"}', {"Content-Type": "text/plain"}, 415, "application/json"),
        (b'{"text": "a"}', {"Content-Type": "application/json; charset=gbk"}, 415, "application/json"),
        (b'{"text": "a"}', {}, 415, "application/json"),
        (b'{"text": ""}', JSON, 422, "text: "),
        (b'{"text": 5}', JSON, 422, "text: "),
        (b'{"text": "\\ud800"}', JSON, 422, "text: "),
        (b'{"text": "a", "style": "1"}', JSON, 422, "style: "),
        (b'{"text": "a", "style": NaN}', JSON, 422, "style: "),
        (b'{"text": "a", "extra": 1}', JSON, 422, "extra: "),
        (b"[]", JSON, 422, "the body: "),
        (b"", JSON, 422, "the body: "),
        (b'{"text": "bad"}', JSON, 422, "give a good one"),
        (b'{"text": "spoil"}', JSON, 422, "the model finds no answer"),
        (b'{"text": "fault"}', JSON, 500, "a fault of the server"),
        (b'{"text": "' + b"a" * 65_536 + b'"}', JSON, 413, "65,536 bytes"),
    ],
)
def test_errors_are_sentences(endpoint, body, headers, status, part):
    with running(make_app(endpoint)) as client:
        sentence = refusal(client.post("/v1/echo", content=body, headers=headers), status)
    assert part in sentence
    assert "/etc" not in sentence and "/srv" not in sentence


def test_unknown_addresses_and_methods(endpoint):
    with running(make_app(endpoint)) as client:
        refusal(client.get("/../etc/passwd"), 404)
        refusal(client.get("/%2e%2e/%2e%2e/app.py"), 404)
        response = client.get("/v1/echo")
        refusal(response, 405)
        for path in ("/healthz", "/readyz", "/metrics", "/v1/models"):
            refusal(client.post(path), 405)
        described = client.get("/openapi.json").json()["paths"]
        assert all(
            "405" in operation["responses"] for path in described.values() for operation in path.values()
        )
        assert response.headers["allow"] == "POST"


def test_readiness_follows_the_models(endpoint):
    gate = threading.Event()

    def load():
        assert gate.wait(PATIENCE)
        return []

    with TestClient(make_app(endpoint, load=load)) as client:
        for response in (
            client.get("/readyz"),
            client.get("/v1/models"),
            client.post("/v1/echo", json={"text": "a"}),
        ):
            refusal(response, 503)
            assert response.headers["retry-after"] == "1"
        assert client.get("/healthz").json() == {"status": "ok"}
        gate.set()
        eventually(lambda: client.get("/readyz").status_code == 200)
        assert client.get("/v1/models").json() == {"models": []}


def test_the_key_is_asked_for_where_work_is_done(endpoint):
    with running(make_app(endpoint, api_key="schlüssel")) as client:
        refusal(client.get("/v1/models"), 401)
        refusal(client.get("/metrics"), 401)
        refusal(client.post("/v1/echo", json={"text": "a"}, headers={"X-API-Key": "no"}), 401)
        refusal(client.post("/v1/echo", json={"text": "a"}, headers={"Authorization": "Basic eA=="}), 401)
        key = "schlüssel".encode()
        for headers in ({b"X-API-Key": key}, {b"Authorization": b"Bearer " + key}):
            assert client.get("/v1/models", headers=headers).status_code == 200
        assert client.get("/healthz").status_code == client.get("/openapi.json").status_code == 200
    assert endpoint.batches == []


def test_banned_words_are_refused_before_decoding(endpoint):
    with running(make_app(endpoint, words=WordFilter(["rude"]))) as client:
        sentence = refusal(client.post("/v1/echo", json={"text": "how RUDE!"}), 422)
        assert client.post("/v1/echo", json={"text": "crude"}).status_code == 200
    assert "rude" not in sentence
    assert endpoint.batches == [["crude"]]


def test_the_log_has_no_user_text_unless_asked(endpoint, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("paddle_dialog.serving"), "propagate", True)
    caplog.set_level(logging.INFO, "paddle_dialog.serving")
    texts = {"text": "confided"}
    with running(make_app(endpoint)) as client:
        client.post("/v1/echo", json=texts)
        client.get("/confided?confided")
    assert "POST /v1/echo 200" in caplog.text and "confided" not in caplog.text
    with running(make_app(EchoEndpoint(), log_user_text=True)) as client:
        client.post("/v1/echo", json=texts)
    assert "confided" in caplog.text


def test_metrics_count_what_happened(endpoint):
    with running(make_app(endpoint)) as client:
        client.post("/v1/echo", json={"text": "a"})
        client.get("/made/up")
        response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert 'paddle_dialog_requests_total{method="POST",path="/v1/echo",status="200"} 1.0' in response.text
    assert 'path="other",status="404"} 1.0' in response.text and "made" not in response.text
    assert 'paddle_dialog_batch_size_count{task="echo"} 1.0' in response.text
    assert "paddle_dialog_queue_length 0.0" in response.text
