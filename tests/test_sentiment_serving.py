"""Judgements over HTTP and on the page."""

import numpy as np
import paddle
import pytest
from chromium import launched, needs_chromium
from page_browser import opened, serving
from serving_toys import loader, make_app, running

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.sentiment.api import SentimentEndpoint
from tasks.sentiment.config import LinearConfig, SentimentConfig
from tasks.sentiment.data import ngram_buckets
from tasks.sentiment.network import SentimentNetwork
from tasks.sentiment.prediction import SentimentPredictor

GOOD, BAD = "好房间", "房间坏"


def predictor() -> SentimentPredictor:
    """Return a network that has learned nothing beside a linear machine that knows 好 and 坏."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *"好坏房间"])
    model = LstmAttentionConfig(embedding_size=8, hidden_size=8, num_layers=1)
    config = SentimentConfig("sentiment", model=model, linear=LinearConfig(longest=1, buckets=1024))
    paddle.seed(3)
    network = SentimentNetwork(config, len(vocabulary))
    table = np.zeros((1024, 1), dtype=np.float32)
    for character, weight in (("好", 9.0), ("坏", -9.0)):
        table[ngram_buckets([character], 1, 1024)[0, 0]] = weight
    network.linear_table.set_value(table)
    return SentimentPredictor(config, TrainedModel.of_network(network, {"text": vocabulary}))


@pytest.fixture(name="client")
def _client():
    endpoint = SentimentEndpoint(LimitsConfig(characters=12))
    with running(make_app(endpoint, load=loader(endpoint, predictor()))) as client:
        yield client


def test_the_answer_is_that_of_the_command_with_words(client):
    (expected,) = predictor().predict_records([GOOD])
    record = client.post("/v1/sentiment", json={"text": GOOD}).json()
    words = record.pop("words")
    assert record == expected and record["label"] == 1
    assert [word["text"] for word in words] == list(GOOD)
    assert words[0]["weight"] > 5 > max(word["weight"] for word in words[1:])
    assert client.post("/v1/sentiment", json={"text": BAD}).json()["label"] == 0


@pytest.mark.parametrize(("text", "told"), [(" ", "empty"), ("好" * 13, "12"), ("", "1")])
def test_what_cannot_be_judged_is_refused(client, text, told):
    response = client.post("/v1/sentiment", json={"text": text})
    assert response.status_code == 422 and told in response.json()["error"]


@needs_chromium
def test_the_tab_colours_the_words():
    endpoint = SentimentEndpoint(LimitsConfig())
    with (
        serving(endpoint, load=loader(endpoint, predictor())) as address,
        launched() as browser,
        opened(browser, address) as page,
    ):
        assert page.get_by_role("tab").all_text_contents() == ["Good or bad?"]
        page.click("#sentiment-ask")
        assert page.locator("#sentiment-error").text_content() == "Write a review first, please."
        page.fill("#sentiment-review", BAD)
        page.click("#sentiment-ask")
        page.locator("#sentiment-words .bad").first.wait_for()
        assert page.locator("#sentiment-status").text_content().startswith("Bad, ")
        assert page.locator("#sentiment-words span").all_text_contents() == list(BAD)
        page.get_by_role("button", name="中文").click()
        assert page.locator("#sentiment-status").text_content().startswith("差评")
