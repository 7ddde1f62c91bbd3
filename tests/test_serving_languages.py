"""Several models of a task behind one address, chosen by language."""

from types import SimpleNamespace

from serving_toys import EchoEndpoint, EchoRequest, make_app, make_config, running

from paddle_dialog.serving.config import ModelSource
from paddle_dialog.serving.endpoint import LANGUAGE, WordFilter, of_language
from paddle_dialog.serving.server import find_models, load_models
from paddle_dialog.text.characters import LanguageName


class SpokenRequest(EchoRequest):
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
