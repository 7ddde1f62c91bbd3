"""The server: errors as sentences, headers, limits, probes, the page, models by language, its settings."""

import asyncio
import json
import logging
import re
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from serving_toys import PATIENCE, EchoEndpoint, eventually, make_app, make_config, refusal, running

from paddle_dialog.errors import UserError
from paddle_dialog.serving.config import ModelSource
from paddle_dialog.serving.endpoint import LANGUAGE, WordFilter, of_language
from paddle_dialog.serving.middleware import SECURITY_HEADERS
from paddle_dialog.serving.server import find_models, load_models, load_serve_config
from paddle_dialog.text.characters import LanguageName

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def endpoint():
    return EchoEndpoint()


def test_an_answer_and_its_headers(endpoint):
    with running(make_app(endpoint)) as client:
        for response in (
            client.post("/v1/echo", json={"text": "<script>"}),
            client.get("/nothing"),
            client.get("/openapi.json"),
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
        (b'{"text": "\\ud800"}', JSON, 422, "half of a surrogate pair"),
        (b'{"text": "a", "style": "1"}', JSON, 422, "style: "),
        (b'{"text": "a", "style": NaN}', JSON, 422, "style: "),
        (b'{"text": "a", "extra": 1}', JSON, 422, "extra: "),
        (b'{"text": "a", "stile": 1}', JSON, 422, "'stile' is unknown; did you mean style?"),
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
        refusal(client.get("/metrics/", follow_redirects=False), 404)  # sent nowhere else
        response = client.get("/v1/echo")
        refusal(response, 405)
        for path in ("/healthz", "/readyz", "/metrics", "/v1/models"):
            refusal(client.post(path), 405)
        described = client.get("/openapi.json").json()["paths"]
        operations = [operation for path in described.values() for operation in path.values()]
        assert all("405" in operation["responses"] for operation in operations)
        assert response.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        ({}, "localhost:8000", 200),
        ({}, "[::1]:8000", 200),
        ({}, "evil.example", 400),
        ({}, "127.0.0.1.evil.example:8000", 400),
        ({"host": "0.0.0.0"}, "evil.example", 200),
        ({"host": "verse.example"}, "Verse.Example:80", 200),
        ({"hosts": ["verse.example"]}, "verse.example", 200),
        ({"hosts": ["verse.example"]}, "127.0.0.1", 400),
    ],
)
def test_a_server_answers_to_its_own_names_alone(endpoint, settings, host, status):
    with running(make_app(endpoint, **settings)) as client:
        assert client.get("/healthz", headers={"Host": host}).status_code == status


def test_pages_elsewhere_ask_only_where_they_are_named(endpoint):
    asked = {"Origin": "https://verse.example", "Access-Control-Request-Method": "POST"}
    with running(make_app(endpoint)) as client:
        assert "access-control-allow-origin" not in client.get("/healthz", headers=asked).headers
    with running(make_app(endpoint, origins=["https://verse.example"])) as client:
        allowed = client.options("/v1/echo", headers=asked)
        other = client.get("/healthz", headers={"Origin": "https://other.example"})
    assert allowed.headers["access-control-allow-origin"] == "https://verse.example"
    assert "access-control-allow-origin" not in other.headers


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
    endpoint.words = WordFilter(["rude"])
    with running(make_app(endpoint)) as client:
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


def test_the_addresses_are_described():
    with running(make_app(EchoEndpoint())) as client:
        api = client.get("/openapi.json").json()
    assert set(api["paths"]) == {"/v1/echo", "/v1/models", "/healthz", "/readyz", "/metrics"}
    statuses = {"200", "400", "413", "415", "422", "503", "504"}
    assert set(api["paths"]["/v1/echo"]["post"]["responses"]) >= statuses
    text = api["components"]["schemas"]["EchoRequest"]["properties"]["text"]
    assert text["maxLength"] == 1000


def tab(folder, **files):
    """Return a folder with a tab's files; `files` are laid over them by their stems."""
    folder.mkdir(exist_ok=True)
    names = {"tab": "tab.html", "script": "tab.js", "words": "words.js", "style": "tab.css"}
    for part, text in {"tab": "<p>标签</p>", "script": "1", "words": "2", "style": "a{}", **files}.items():
        if text is not None:
            (folder / names[part]).write_text(text, encoding="utf-8")
    return folder


def test_the_page_has_the_tabs_of_its_endpoints(tmp_path):
    endpoint = EchoEndpoint()
    with running(make_app(endpoint)) as client:
        bare = client.get("/").text
    words = 'export const word = {\n  tab: ["回声", "Echo"],\n};\n'
    endpoint.page = tab(tmp_path, words=words, tab='<p data-text="tab"></p>')
    with running(make_app(endpoint)) as client:
        page = client.get("/").text
        chinese = client.get("/", headers={"Accept-Language": "zh-TW,zh;q=0.9"}).text
        for path in ("/page/none.js", "/page/index.html", "/tasks/echo/none.js", "/tasks/other/all.js"):
            refusal(client.get(path), 404)
        refusal(client.post("/page/all.js", json={}), 405)
        icon = client.get("/page/icon.svg")
        module = client.get(re.search(r'data-module="([^"]+)"', page)[1])
        styles = client.get(re.search(r'rel="stylesheet" href="([^"]+)"', page)[1])
    assert 'role="tab"' not in bare and "tasks/" not in bare
    assert page.count("Echo") == chinese.count("回声") == 2  # on the tab and in the panel, without a script
    assert '<html lang="zh-Hans"' in chinese and '<section id="echo" role="tabpanel"' in page
    assert icon.headers["content-type"] == "image/svg+xml" and "a{}" in styles.text
    assert module.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "tasks_echo_words" in module.text


def test_the_page_is_kept_by_browsers_and_sent_compressed():
    with running(make_app(EchoEndpoint())) as client:
        page = client.get("/", headers={"Accept-Encoding": "gzip"})
        address = re.search(r'src="(page/all.js[^"]+)"', page.text)[1]
        script = client.get(address, headers={"Accept-Encoding": "gzip"})
        font = client.get("/page/fonts/brush-00.woff2", headers={"Accept-Encoding": "gzip"})
        again = client.get("/", headers={"If-None-Match": page.headers["etag"]})
        models = client.get("/v1/models")
    assert page.headers["content-encoding"] == script.headers["content-encoding"] == "gzip"
    assert page.headers["cache-control"] == "no-cache" and again.status_code == 304 and again.content == b""
    assert "immutable" in script.headers["cache-control"] and "content-encoding" not in font.headers
    assert font.headers["content-type"] == "font/woff2" and models.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({"script": 'import other from "./words.js";\n'}, "write `import { a }"),
        ({"script": 'import { a } from "./none.js";\n'}, "there is no such module"),
        ({"script": 'import { a } from "./tab.js";\n'}, "in a circle"),
        ({"words": None}, "a tab needs tab.html, tab.js, words.js, and this has no words.js"),
    ],
)
def test_what_is_wrong_with_a_tab_is_told_at_the_start(tmp_path, files, part):
    endpoint = EchoEndpoint()
    endpoint.page = tab(tmp_path, **files)
    with pytest.raises(UserError, match=re.escape(part)):
        make_app(endpoint)


def test_a_body_without_a_length_is_cut_at_the_limit():
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

        return await call(make_app(EchoEndpoint(), limits={"body_bytes": 5000}), receive)

    assert asyncio.run(scenario())[0]["status"] == 413
    assert len(sent) == 6


def test_a_slow_body_is_refused():
    async def receive():
        await asyncio.sleep(60)

    messages = asyncio.run(call(make_app(EchoEndpoint(), limits={"seconds": 0.05}), receive))
    assert messages[0]["status"] == 408


@contextmanager
def at_work(endpoint, client):
    """Have the server decode a request for the length of the block."""
    endpoint.open.clear()
    asking = threading.Thread(target=client.post, args=("/v1/echo",), kwargs={"json": {"text": "first"}})
    asking.start()
    assert endpoint.busy.wait(PATIENCE)
    yield
    endpoint.open.set()
    asking.join()


def test_a_late_answer_is_a_504_and_is_not_decoded_later(endpoint):
    with running(make_app(endpoint, limits={"seconds": 1.0})) as client, at_work(endpoint, client):
        sentence = refusal(client.post("/v1/echo", json={"text": "late"}), 504)
    assert "within 1 seconds" in sentence
    assert endpoint.batches == [["first"]]


def test_a_client_that_leaves_is_dropped_before_decoding(endpoint):
    app = make_app(endpoint)
    with running(app) as client, at_work(endpoint, client):
        asyncio.run(call(app, leaving(b'{"text": "gone"}')))
    assert endpoint.batches == [["first"]]
    left = {"path": "/v1/echo", "method": "POST", "status": "499"}
    assert app.state.metrics.registry.get_sample_value("paddle_dialog_requests_total", left) == 1


def test_a_full_queue_is_a_503_with_retry_after(endpoint):
    app = make_app(endpoint, batching={"queue": 1, "max_batch": 1})
    with running(app) as client:
        with at_work(endpoint, client):
            waiting = threading.Thread(target=client.post, args=("/v1/echo",), kwargs={"json": {"text": "b"}})
            waiting.start()
            queue = "paddle_dialog_queue_length"
            eventually(lambda: app.state.metrics.registry.get_sample_value(queue) == 1)
            response = client.post("/v1/echo", json={"text": "c"})
        waiting.join()
        assert client.post("/v1/echo", json={"text": "c"}).status_code == 200
    refusal(response, 503)
    assert int(response.headers["retry-after"]) >= 1


def leaving(body):
    """Return a client that sends a body and soon leaves."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.sleep(0.05)
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
        "headers": [(b"content-type", b"application/json"), (b"host", b"localhost:8000")],
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "server": ("test", 80),
        "client": ("test", 1),
    }
    await app(scope, receive, send)
    assert not sent or sent[0]["status"] == 499 or json.loads(sent[1]["body"])
    return sent


def test_the_shipped_settings_are_sound(monkeypatch):
    monkeypatch.delenv("PADDLE_DIALOG_API_KEY", raising=False)
    config = load_serve_config("configs/serve.yaml")
    assert config.host == "127.0.0.1" and not config.api_key and not config.log_user_text
    models = "couplet empathetic empathetic_zh poem sentiment sentiment_en translation"
    assert set(config.models) == set(models.split())
    monkeypatch.setenv("PADDLE_DIALOG_API_KEY", "k")
    overridden = load_serve_config("configs/serve.yaml", ["models.couplet=null", "batching.max_batch=1"])
    assert overridden.api_key == "k" and overridden.models["couplet"] is None


def test_a_task_without_weights_is_left_out_and_said_and_some_must_be_left(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paddle_dialog.recipes.MODELS", tmp_path / "pretrained")
    (tmp_path / "pretrained/empathetic").mkdir(parents=True)
    models = {"couplet": ModelSource(), "empathetic": ModelSource()}
    found, missing = find_models(make_config(models=models))
    assert [(m.task.name, m.folder.name) for m in found] == [("empathetic", "empathetic")]
    assert missing[0].startswith("couplet is not served: no weights: runs/couplet/best")
    with pytest.raises(UserError, match="no model to serve: couplet is not served"):
        find_models(make_config(models={"couplet": ModelSource()}))


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        (["ass"], "you ASS.", True),
        (["ass"], "a class", False),
        (["ass"], "ass_", False),
        (["ass"], "我ass你", True),
        (["ass"], "ａｓｓ", True),
        (["ass"], "a\u200bss", True),
        (["shut up"], "Shut \n UP now", True),
        (["shut up"], "shut  upwards", False),
        (["c++"], "i like c++!", True),
        (["don't"], "don’t", True),
        (["花更"], "花 更红", True),
        (["花更"], "花\u200b更红", True),
        (["花更"], "花红更", False),
        (["Ａ计划"], "a计划", True),
        ([], "anything", False),
        (["", "  ", "\u200b"], "anything", False),
    ],
)
def test_what_is_found(words, text, found):
    assert WordFilter(words).finds(text) is found


def test_a_file_of_words(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("rude\n\n 花更 \n", encoding="utf-8")
    words = WordFilter.load(str(file))
    assert words.words == ["rude", "花更"]
    assert not WordFilter.load(None).words


class SpokenRequest(EchoEndpoint.request_model):
    language: LanguageName | None = LANGUAGE


class SpokenEcho(EchoEndpoint):
    """Echoes what it is told, by a model of one language."""

    request_model = SpokenRequest

    def __init__(self, language):
        super().__init__()
        self.language = language

    def answer(self, items, settings):
        return [{**one, "language": self.language} for one in super().answer(items, settings)]


def start(*languages):
    return running(make_app(*map(SpokenEcho, languages)))


def ask(client, text, **request):
    response = client.post("/v1/echo", json={"text": text, **request})
    return response.status_code, response.json()


def test_the_language_of_the_text_chooses_the_model():
    with start("en", "zh") as client:
        for text, language in [("我很难过", "zh"), ("so sad", "en"), ("我的 boss 好凶", "zh"), ("😊", "en")]:
            assert ask(client, text) == (200, {"echo": text, "language": language})
        assert ask(client, "so sad", language="zh")[1]["language"] == "zh"
        assert ask(client, "so sad", language="zh", style=2)[1]["language"] == "zh"
        status, record = ask(client, "so sad", language="fr")
        assert status == 422 and "language" in record["error"]
    with start("zh", "en") as client:
        assert ask(client, "😊")[1]["language"] == "zh"  # the first where nothing tells


def test_one_english_word_changes_no_conversation():
    endpoints = {language: SpokenEcho(language) for language in ("en", "zh")}
    endpoints["en"].texts = lambda request: request.turns
    for turns, language in [
        (["我丢了钱包", "啊", "OK"], "zh"),
        (["我丢了钱包", "啊", "oh no"], "en"),
        (["OK"], "en"),
    ]:
        assert of_language(endpoints, SimpleNamespace(language=None, turns=turns)).language == language


def test_one_model_answers_all_but_another_language_that_is_asked_for():
    with start("en") as client:
        assert ask(client, "我很难过")[1]["language"] == "en"
        assert ask(client, "so sad", language="en")[0] == 200
        status, record = ask(client, "so sad", language="zh")
    assert status == 422
    assert record["error"] == "language: this server has a model for en only, and none for zh"


def test_the_models_that_ship_are_served_together():
    models = {
        "sentiment": ModelSource(config="sentiment_zh"),
        "sentiment_en": ModelSource(config="sentiment_en"),
    }
    found, missing = find_models(make_config(models=models))
    assert missing == [] and [m.folder.name for m in found] == ["sentiment_zh", "sentiment_en"]
    cards = load_models(found, WordFilter(), "cpu")
    app = make_app(*(endpoint for m in found for endpoint in m.endpoints), cards=cards)
    with running(app) as client:
        cards = client.get("/v1/models").json()["models"]
        assert [card["details"]["language"] for card in cards] == ["zh", "en"]
        assert {(card["task"], card["path"]) for card in cards} == {("sentiment", "/v1/sentiment")}
        for text, language in [("房间又脏又吵，再也不来了。", "zh"), ("a dull and tedious mess .", "en")]:
            record = client.post("/v1/sentiment", json={"text": text}).json()
            assert (record["label"], record["language"]) == (0, language)
