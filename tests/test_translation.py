"""The translation task: pairs, the model, the commands and the server."""

import json
import random
import re

import numpy as np
import paddle
import pytest
from chromium import needs_chromium
from command import records, run_here, texts
from page_browser import opened, serving
from serving_toys import app_of, post, served

import paddle_dialog
from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models.seq2seq import PointerSeq2Seq
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import NoResult, WordFilter
from paddle_dialog.tasks.translation.api import TranslationEndpoint
from paddle_dialog.tasks.translation.data import (
    Pair,
    TranslationConfig,
    TranslationDataConfig,
    TranslationDecodingConfig,
    collate,
    encode_pair,
    join,
    limit_length,
    read_pairs,
    split,
)
from paddle_dialog.tasks.translation.prediction import TranslationPredictor
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = dict(zip("之乎者也曰吾汝其", ["的", "吗", "人", "啊", "说话", "我们", "你", "他的"], strict=True))
NAMES = [chr(0x5200 + number) for number in range(300)]  # each too rare for the vocabulary: to be copied
RECIPE = """
task: translation
model: {{name: transformer, width: 64, num_heads: 2, inner_width: 128, encoder_layers: 1, decoder_layers: 1,
  max_positions: 32, dropout: 0.0}}
training: {{epochs: 20, learning_rate: 0.003, schedule: cosine, warmup_steps: 50, clip_norm: 1.0, eval_every: 800}}
data: {{train: {folder}/train.tsv, dev: {folder}/dev.tsv, max_length: 16, batch_size: 64, min_count: 60}}
decoding: {{beam_size: 3, max_length: 16, length_penalty: average}}
output_dir: {folder}/run
"""


def toy_pairs():
    """Write 2,600 sentences of a language in which each word has one translation and names stay as they are."""
    generator = random.Random(3)
    sentences: dict[str, None] = {}
    while len(sentences) < 2600:
        words = generator.choices(list(WORDS), k=generator.randint(3, 6))
        words[generator.randrange(len(words))] = generator.choice(NAMES)
        sentences["".join(words)] = None
    return [(s, "".join(WORDS.get(character, character) for character in s)) for s in sentences]


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Return the recipe of a model that was trained on the toy language."""
    folder = tmp_path_factory.mktemp("translation")
    pairs = toy_pairs()
    for name, part in (("train", pairs[:2500]), ("dev", pairs[2500:])):
        (folder / f"{name}.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in part), encoding="utf-8")
    path = folder / "toy.yaml"
    path.write_text(RECIPE.format(folder=folder), encoding="utf-8")
    trained = run_here("train", "-c", path)
    assert trained.status == 0, trained.stderr
    assert float(re.search(r"best dev perplexity ([\d.]+)", trained.stdout)[1]) < 1.02
    return path


def test_sentences_with_unknown_names_are_translated_without_a_fault(toy):
    (result,) = records(run_here("evaluate", "-c", toy, "--json"))
    assert result["n"] == 100 and result["perplexity"] < 1.05
    assert result["bleu"] > 98 and result["chrf"] > 98
    assert result["copying"]["bleu"] < 10
    (likely,) = records(run_here("evaluate", "-c", toy, "--json", "--no-answers"))
    assert likely == {name: result[name] for name in ("n", "pairs", "perplexity")}

    sources = [line.split("\t") for line in (toy.parent / "dev.tsv").read_text("utf-8").splitlines()[:20]]
    asked = (source for source, _ in sources)
    answered = records(run_here("predict", "-c", toy, "--json", "--n-best", "2", *asked))
    for record, (source, target) in zip(answered, sources, strict=True):
        assert record.keys() == {"source", "predictions"} and record["source"] == source
        first, second = record["predictions"]
        assert first.keys() == {"text", "score"}
        assert first["text"] == target and second["score"] < first["score"] <= 0


def test_a_text_of_two_sentences_is_translated_sentence_by_sentence(toy):
    sentences = ["之乎者也。", "曰吾汝其！"]
    lone = [run_here("predict", "-c", toy, sentence).stdout.strip() for sentence in sentences]
    assert run_here("predict", "-c", toy, "".join(sentences)).stdout.strip() == "".join(lone)


def test_paddles_own_beam_search_translates_the_same(toy):
    sources = [source for source, _ in toy_pairs()[2500:2506]]
    plain = ("predict", "-c", toy, "--json", "-o", "decoding.length_penalty=none", *sources)
    fast, reference = (
        texts(run_here(*plain, "-o", f"decoding.engine={engine}")) for engine in ("fast", "reference")
    )
    assert len(fast) == 6 and [first for first, *_ in reference] == [first for first, *_ in fast]


def test_arrays_give_the_numbers_of_the_network(toy):
    predictor = paddle_dialog.load(toy.parent / "run" / "best")
    assert isinstance(predictor, TranslationPredictor)
    sources = ["之刀乎刁", "者也曰刁吾"]
    on_arrays = predictor.predict(sources, 3)
    network = TrainedModel.of_network(predictor.network, {"text": predictor.vocabulary})
    through_paddle = TranslationPredictor(predictor.config, network)
    for fast, slow in zip(on_arrays, through_paddle.predict(sources, 3), strict=True):
        assert [one.text for one in fast] == [one.text for one in slow]
        np.testing.assert_allclose([one.score for one in fast], [one.score for one in slow], atol=1e-4)
    weights = predictor.attention("之刀乎刁", "的刀吗刁")
    assert weights.shape == (5, 5)
    np.testing.assert_allclose(weights, through_paddle.attention("之刀乎刁", "的刀吗刁"), atol=1e-5)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-5)


def test_pairs_are_read_either_way_and_in_words(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("I am  here\tje suis là\n\n a b\tc\n", encoding="utf-8")
    pairs = [(["I", "am", "here"], ["je", "suis", "là"]), (["a", "b"], ["c"])]
    assert read_pairs(str(path), "words") == pairs
    assert read_pairs(str(path), "words", reverse=True)[1] == (["c"], ["a", "b"])
    assert read_pairs(str(path), "characters")[1] == ("ab", "c")
    for text, joined, unit in (("a  b", "a b", "words"), ("学 而", "学而", "characters")):
        assert join(split(text, unit), unit) == joined


def test_long_pairs_are_skipped():
    pairs = [Pair("abc", "d"), Pair("a", "b")]
    assert limit_length(pairs, 2) == ([("a", "b")], "1 pairs, 1 skipped as too long")
    with pytest.raises(UserError, match="every pair has more than 1 tokens"):
        limit_length(pairs[:1], 1)


def test_unknown_tokens_are_numbered_as_they_come_in_their_source():
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "a", "b"])  # V is 6
    encoded = encode_pair(Pair("xayx", "yazb"), vocabulary)
    assert encoded.source.tolist() == [6, 4, 7, 6, Vocabulary.eos_id]
    assert encoded.target.tolist() == [7, 4, Vocabulary.unk_id, 5]  # z is nowhere in the source
    source, lengths, given, label, mask = collate([encoded, encode_pair(Pair("a", "b"), vocabulary)])
    assert source[1].tolist() == [4, 3, 0, 0, 0] and lengths.tolist() == [5, 2]
    assert given.tolist() == [[2, 7, 4, 1, 5], [2, 5, 0, 0, 0]]
    assert label.tolist() == [[7, 4, 1, 5, 3], [5, 3, 0, 0, 0]]
    assert mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]] and mask.dtype == np.float32


def test_no_ngram_is_written_twice_where_that_is_asked_for():
    free, guarded = (predictor(), predictor(no_repeat_ngram=1))
    texts = [translator.predict([TEXT])[0][0].sentences for translator in (free, guarded)]
    assert any(len(set(tokens)) < len(tokens) for tokens in texts[0])
    assert all(len(set(tokens)) == len(tokens) for tokens in texts[1])


TEXT = "之乎。者也！"


def predictor(**decoding):
    """Return a translator that has learned nothing."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *"之乎者也的吗人啊。！"])
    model = TransformerConfig(width=16, num_heads=2, inner_width=16, encoder_layers=1, decoder_layers=1)
    settings = TranslationDecodingConfig(**{"beam_size": 3, "max_length": 6, **decoding})
    data = TranslationDataConfig(max_length=8)
    config = TranslationConfig("translation", model=model, data=data, decoding=settings)
    paddle.seed(7)  # both sentences have a translation
    network = PointerSeq2Seq(model, len(vocabulary))
    return TranslationPredictor(config, TrainedModel.of_network(network, {"text": vocabulary}))


def ask(client, **request):
    return post(client, "translation", **{"source": TEXT, **request})


def start():
    return served(predictor(), TranslationEndpoint(LimitsConfig(characters=12)))


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


def test_what_cannot_be_translated_is_refused_and_banned_words_are_not_written():
    refused = {" ": "empty", "oh": "no hanzi", "之" * 9: "has 9 characters", "之" * 13: "12"}
    with start() as client:
        for source, told in refused.items():
            status, record = ask(client, source=source)
            assert status == 422 and told in record["error"]
    endpoint, made = TranslationEndpoint(LimitsConfig()), predictor()
    endpoint.use(made, WordFilter([made.predict([TEXT])[0][0].text[0]]))
    (answer,) = endpoint.answer([(TEXT, False)], 1)
    assert isinstance(answer, NoResult)


@needs_chromium
def test_the_tab_shows_translation_and_attention(browser):
    endpoint, made = TranslationEndpoint(LimitsConfig()), predictor()
    (expected,) = made.predict_records([TEXT], 3)
    with serving(app_of((made, [endpoint]))) as address, opened(browser, address) as page:
        assert page.get_by_role("tab").all_text_contents() == ["Classical Chinese"]
        page.click("#translation-ask")
        assert page.locator("#translation-error").text_content() == "Write a text first, please."
        page.fill("#translation-source", TEXT)
        with page.expect_response("**/v1/translation") as answered:
            page.click("#translation-ask")
        page.locator("#translation-result").wait_for()
        texts = [prediction["text"] for prediction in expected["predictions"]]
        assert page.locator("#translation-text").text_content() == texts[0]
        assert page.locator("#translation-others li").all_text_contents() == texts[1:]
        assert page.locator("#translation-read .glyph").all_text_contents() == list(TEXT)
        page.emulate_media(forced_colors="active")
        glyph = page.locator("#translation-read .glyph").first
        assert glyph.evaluate("at => getComputedStyle(at).forcedColorAdjust") == "none"  # shades are seen
        page.locator("#translation-text .glyph").last.focus()
        page.keyboard.press("Home")
        row = answered.value.json()["attention"]["weights"][0]
        shades = page.locator("#translation-read .glyph").evaluate_all(
            "all => all.map(one => Number(one.style.getPropertyValue('--weight')))"
        )
        assert shades == pytest.approx([weight / max(row) for weight in row], abs=0.001)


@pytest.fixture(scope="module")
def shipped():
    """Return the translator that ships."""
    predictor = paddle_dialog.load("translation")
    assert isinstance(predictor, TranslationPredictor)
    return predictor


def test_a_missing_end_and_traditional_characters_change_nothing(shipped):
    texts = ["三人行必有我师焉", "三人行必有我师焉，", "“三人行必有我师焉”", "醉翁之意不在酒"]
    bare, comma, quoted, drunk = (answers[0].text for answers in shipped.predict(texts))
    marked = shipped.predict([f"{texts[0]}。", "“三人行必有我师焉。”", f"{texts[3]}。"])
    ended = [answers[0].text for answers in marked]
    assert [bare, quoted, drunk] == ended and comma == bare
    (whole,) = shipped.predict(["晉太元中，武陵人捕魚為業\n\n三人行必有我师焉\n"])[0]
    assert whole.text == shipped.predict(["晋太元中，武陵人捕鱼为业。"])[0][0].text + bare


def test_the_first_translation_stays_the_first(shipped):
    texts = ["此十二人者，或伏死于窟穴。", "上闻之，召诸将议，余人不预。", "内者，吾甲兵顿，士民病。"]
    few, many = shipped.predict(texts, 1), shipped.predict(texts, 9)
    for one, nine in zip(few, many, strict=True):
        assert one[0] == nine[0] and len({each.text for each in nine}) == 9


def test_what_is_not_to_be_trusted_is_said(shipped):
    texts = ["我觉得这个电影不太好看", "此二人者，皆圣人也；然犹不能无役身以进，如此其污也！"]
    modern, looped, plain = shipped.predict_records([*texts, "学而时习之，不亦说乎？"])
    assert modern["unsure"] == "modern" and "modern Chinese" in str(shipped.note_of(modern))
    assert looped["unsure"] == "repeats" and "unsure" not in plain and shipped.note_of(plain) is None
    with pytest.raises(UserError, match="input 1 is None"):
        shipped.predict([None])  # type: ignore[list-item]
