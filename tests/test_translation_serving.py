"""Translations over HTTP and on the page."""

import json

import paddle
import pytest
from chromium import launched, needs_chromium
from page_browser import opened, serving
from serving_toys import loader, make_app, running

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.config.schema import DecodingConfig
from paddle_dialog.models.pointer_seq2seq import PointerSeq2Seq
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import NoResult
from paddle_dialog.serving.word_filter import WordFilter
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.translation.api import TranslationEndpoint, TranslationItem
from tasks.translation.config import TranslationConfig, TranslationDataConfig
from tasks.translation.prediction import TranslationPredictor

TEXT = "之乎。者也！"


def predictor() -> TranslationPredictor:
    """Return a translator that has learned nothing."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *"之乎者也的吗人啊。！"])
    model = TransformerConfig(width=16, num_heads=2, inner_width=16, encoder_layers=1, decoder_layers=1)
    decoding = DecodingConfig(beam_size=3, max_length=6)
    config = TranslationConfig(
        "translation", model=model, data=TranslationDataConfig(max_length=8), decoding=decoding
    )
    paddle.seed(7)  # both sentences have a translation
    network = PointerSeq2Seq(model, len(vocabulary))
    return TranslationPredictor(config, TrainedModel.of_network(network, {"text": vocabulary}))


def ask(client, **request):
    response = client.post("/v1/translation", json={"source": TEXT, **request})
    return response.status_code, response.json()


def start(words=None):
    endpoint = TranslationEndpoint(LimitsConfig(characters=12))
    words = words or WordFilter()
    return running(make_app(endpoint, words=words, load=loader(endpoint, predictor(), words)))


def test_the_answer_is_that_of_the_command_with_attention():
    (expected,) = predictor().predict_records([TEXT], 2)
    with start() as client:
        assert ask(client, n_best=2) == (200, json.loads(json.dumps(expected)))
        record = ask(client, attention=True)[1]
        card = client.get("/v1/models").json()["models"][0]
    attention = record["attention"]
    assert "".join(attention["source"]) == TEXT
    assert "".join(attention["target"]) == record["predictions"][0]["text"]
    assert len(attention["weights"]) == len(attention["target"])
    for row, target in zip(attention["weights"], attention["target"], strict=True):
        assert len(row) == len(TEXT) and 0 < sum(row) <= 1.001, target
    # A token of the first sentence looks at nothing of the second.
    assert sum(attention["weights"][0][3:]) == 0 and sum(attention["weights"][-1][:3]) == 0
    assert card["details"] == {"longest_sentence": 8, "tokens": "characters", "reverse": False}


@pytest.mark.parametrize(
    ("request_", "told"),
    [({"source": " "}, "empty"), ({"source": "之" * 9}, "has 9 characters"), ({"source": "之" * 13}, "12")],
)
def test_what_cannot_be_translated_is_refused(request_, told):
    with start() as client:
        status, record = ask(client, **request_)
    assert status == 422 and told in record["error"]


def test_banned_words_are_not_written(tmp_path):
    endpoint, made = TranslationEndpoint(LimitsConfig()), predictor()
    text = made.predict([TEXT])[0][0].text
    (tmp_path / "words.txt").write_text(text[0], encoding="utf-8")
    endpoint.use(made, WordFilter.load(str(tmp_path / "words.txt")))
    (answer,) = endpoint.answer([TranslationItem(TEXT, False)], 1)
    assert isinstance(answer, NoResult)


@needs_chromium
def test_the_tab_shows_translation_and_attention():
    endpoint, made = TranslationEndpoint(LimitsConfig()), predictor()
    (expected,) = made.predict_records([TEXT], 3)
    with (
        serving(endpoint, load=loader(endpoint, made)) as address,
        launched() as browser,
        opened(browser, address) as page,
    ):
        assert page.get_by_role("tab").all_text_contents() == ["Classical Chinese"]
        page.click("#translation-ask")
        assert page.locator("#translation-error").text_content() == "Write a text first, please."
        page.fill("#translation-source", TEXT)
        page.click("#translation-ask")
        page.locator("#translation-result").wait_for()
        texts = [prediction["text"] for prediction in expected["predictions"]]
        assert page.locator("#translation-text").text_content() == texts[0]
        assert page.locator("#translation-others li").all_text_contents() == texts[1:]
        assert page.locator("#translation-attention .source .token").all_text_contents() == list(TEXT)
