"""The server's answers: sentences for errors, headers that bind the browser, limits, the key, probes."""

import asyncio
import json
import logging
import re
import threading

import pytest
from serving_toys import PATIENCE, EchoEndpoint, TestClient, eventually, make_app, running

from paddle_dialog.errors import UserError
from paddle_dialog.serving.guard import SECURITY_HEADERS
from paddle_dialog.serving.word_filter import WordFilter

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def endpoint():
    return EchoEndpoint()


def refusal(response, status):
    """Return the sentence of an error, whose form is checked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    (key, sentence), *more = response.json().items()
    assert key == "error" and not more
    assert sentence and "\n" not in sentence and "Traceback" not in sentence
    return sentence


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


def test_a_body_without_a_length_is_cut_at_the_limit(endpoint):
    sent = []

    def endless():
        while True:
            sent.append(1)
            assert len(sent) < 1000
            yield b"a" * 1000

    async def scenario():
        messages = endless()

        async def receive():
            return {"type": "http.request", "body": next(messages), "more_body": True}

        return await call(make_app(endpoint, limits={"body_bytes": 5000}), receive)

    assert asyncio.run(scenario())[0]["status"] == 413
    assert len(sent) == 6


def test_a_slow_body_is_refused(endpoint):
    async def receive():
        await asyncio.sleep(60)

    messages = asyncio.run(call(make_app(endpoint, limits={"seconds": 0.05}), receive))
    assert messages[0]["status"] == 408


def test_a_late_answer_is_a_504_and_is_not_decoded_later(endpoint):
    with running(make_app(endpoint, limits={"seconds": 1.0})) as client:
        endpoint.open.clear()
        blocking = threading.Thread(target=client.post, args=("/v1/echo",), kwargs={"json": {"text": "a"}})
        blocking.start()
        assert endpoint.busy.wait(PATIENCE)
        sentence = refusal(client.post("/v1/echo", json={"text": "late"}), 504)
        endpoint.open.set()
        blocking.join()
    assert "within 1 seconds" in sentence
    assert endpoint.batches == [["a"]]


def test_a_client_that_leaves_is_dropped_before_decoding(endpoint):
    app = make_app(endpoint)
    with running(app):
        endpoint.open.clear()
        first = threading.Thread(
            target=lambda: asyncio.run(call(app, leaving_after(b'{"text": "first"}', None)))
        )
        first.start()
        assert endpoint.busy.wait(PATIENCE)
        asyncio.run(call(app, leaving_after(b'{"text": "gone"}', 0.05)))
        endpoint.open.set()
        first.join()
    assert endpoint.batches == [["first"]]
    left = {"path": "/v1/echo", "method": "POST", "status": "499"}
    assert app.state.metrics.registry.get_sample_value("paddle_dialog_requests_total", left) == 1


def test_a_full_queue_is_a_503_with_retry_after(endpoint):
    app = make_app(endpoint, batching={"queue": 1, "max_batch": 1})
    with running(app) as client:
        endpoint.open.clear()
        threads = [
            threading.Thread(target=client.post, args=("/v1/echo",), kwargs={"json": {"text": text}})
            for text in "ab"
        ]
        threads[0].start()
        assert endpoint.busy.wait(PATIENCE)
        threads[1].start()
        queue = "paddle_dialog_queue_length"
        eventually(lambda: app.state.metrics.registry.get_sample_value(queue) == 1)
        response = client.post("/v1/echo", json={"text": "c"})
        endpoint.open.set()
        for thread in threads:
            thread.join()
        assert client.post("/v1/echo", json={"text": "c"}).status_code == 200
    refusal(response, 503)
    assert int(response.headers["retry-after"]) >= 1


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


def test_the_description_is_a_page_without_scripts_or_foreign_addresses(endpoint):
    with running(make_app(endpoint)) as client:
        api, page = client.get("/openapi.json").json(), client.get("/docs")
        assert client.get("/docs.css").headers["content-type"].startswith("text/css")
    assert set(api["paths"]) == {"/v1/echo", "/v1/models", "/healthz", "/readyz", "/metrics"}
    assert set(api["paths"]["/v1/echo"]["post"]["responses"]) >= {
        "200",
        "400",
        "413",
        "415",
        "422",
        "503",
        "504",
    }
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for part in ("POST /v1/echo", "A text to send back", "characters at most 50", "at least 0"):
        assert part in page.text
    assert not re.search(r"<script|<style|style=|https?://", page.text)


def tab(folder, **files):
    """Return a folder with a tab's files; `files` are laid over them by their stems."""
    folder.mkdir(exist_ok=True)
    names = {"tab": "tab.html", "script": "tab.js", "words": "words.js", "style": "tab.css"}
    for part, text in {"tab": "<p>标签</p>", "script": "1", "words": "2", "style": "a{}", **files}.items():
        if text is not None:
            (folder / names[part]).write_text(text, encoding="utf-8")
    return folder


def test_the_page_has_the_tabs_of_its_endpoints(endpoint, tmp_path):
    with running(make_app(endpoint)) as client:
        bare = client.get("/").text
    endpoint.page = tab(tmp_path)
    with running(make_app(endpoint)) as client:
        page = client.get("/").text
        kinds = {
            path: client.get(path).headers["content-type"]
            for path in (
                "/",
                "/page/main.js",
                "/page/style.css",
                "/page/icon.svg",
                "/tasks/echo/tab.js",
                "/tasks/echo/tab.css",
            )
        }
        for path in ("/page/none.js", "/page/index.html", "/tasks/echo/none.js", "/tasks/other/tab.js"):
            refusal(client.get(path), 404)
        refusal(client.post("/page/main.js", json={}), 405)
    assert 'role="tab"' not in bare and "tasks/" not in bare
    assert '<link rel="stylesheet" href="tasks/echo/tab.css">' in page
    assert (
        '<section id="echo" role="tabpanel" aria-labelledby="tab-echo" tabindex="-1">\n<p>标签</p></section>'
        in page
    )
    assert list(kinds.values()) == [
        "text/html; charset=utf-8",
        "text/javascript; charset=utf-8",
        "text/css; charset=utf-8",
        "image/svg+xml",
        "text/javascript; charset=utf-8",
        "text/css; charset=utf-8",
    ]


def test_a_tab_that_lacks_a_file_is_told_at_the_start(endpoint, tmp_path):
    endpoint.page = tab(tmp_path, words=None)
    with pytest.raises(
        UserError, match=r"a tab needs tab\.html, tab\.js, words\.js, and this has no words\.js"
    ):
        make_app(endpoint)


def leaving_after(body, seconds):
    """Return a client that sends a body and leaves after some seconds, or never."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.sleep(seconds if seconds is not None else 3600)
        return {"type": "http.disconnect"}

    return receive


async def call(app, receive):
    """Return what the application sends to a bare `POST /v1/echo`."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/echo",
        "raw_path": b"/v1/echo",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "server": ("test", 80),
        "client": ("test", 1),
    }
    await app(scope, receive, send)
    assert not sent or sent[0]["status"] == 499 or json.loads(sent[1]["body"])
    return sent
