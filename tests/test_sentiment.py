"""The sentiment task: reviews, n-grams, the linear classifier, the network, the command and the server."""

import json
import math
import pickle
import random
import re

import numpy as np
import paddle
import pytest
from chromium import needs_chromium
from command import records, run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from page_browser import opened, serving
from serving_toys import app_of, post, served

import paddle_dialog
from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_model
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.tasks.sentiment.api import SentimentEndpoint
from paddle_dialog.tasks.sentiment.data import (
    ALWAYS,
    LinearConfig,
    Review,
    ReviewEncoder,
    SentimentConfig,
    SentimentDataConfig,
    collate,
    contributions,
    ngram_buckets,
    present,
    read_phrases,
    shortened,
    tokens_of,
)
from paddle_dialog.tasks.sentiment.network import SentimentLoss, SentimentNetwork, fit_linear
from paddle_dialog.tasks.sentiment.prediction import SentimentPredictor
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

MODELS = {
    "lstm": "{name: lstm_attention, embedding_size: 24, hidden_size: 24, num_layers: 1, bidirectional: true}",
    "transformer": "{name: transformer, width: 32, num_heads: 2, inner_width: 64, encoder_layers: 2, dropout: 0.1}",
}
CONFIG = """
task: sentiment
model: {model}
pooling: {pooling}
linear: {{longest: 2, buckets: {buckets}, phrases: {phrases}}}
data: {{train: {folder}/train.tsv, dev: {folder}/dev.tsv, max_length: 24, batch_size: 32, unknown_rate: 0.0}}
training: {{epochs: {epochs}, learning_rate: 0.01, schedule: cosine, warmup_steps: 20, save_every: 1000}}
output_dir: {folder}/run
"""


def toy_reviews():
    """Write 700 reviews in which a 不 before 好 or 坏 turns its meaning, so that single characters tell nothing."""
    generator = random.Random(4)
    lines: dict[str, None] = {}
    while len(lines) < 700:
        filler = [generator.choice("房间早餐位置服务电影书") for _ in range(generator.randint(2, 9))]
        good, negated = generator.random() < 0.5, generator.random() < 0.5
        opinion = ("不" if negated else "很") + ("好" if good else "坏")
        filler.insert(generator.randrange(len(filler) + 1), opinion)
        lines[f"{int(good != negated)}\t{''.join(filler)}"] = None
    return list(lines)


@pytest.fixture(
    scope="module",
    params=[("lstm", "max", 0, 8), ("transformer", "attention", 0, 20), ("lstm", "max", 4096, 1)],
    ids=["lstm", "transformer", "linear"],
)
def toy(request, tmp_path_factory):
    """Return the recipe of a model that was trained to tell the toy reviews apart."""
    model, pooling, buckets, epochs = request.param
    folder, lines = tmp_path_factory.mktemp("sentiment"), toy_reviews()
    for name, part in (("train", lines[:600]), ("dev", lines[600:])):
        (folder / f"{name}.tsv").write_text("\n".join(part), encoding="utf-8")
    path = folder / "toy.yaml"
    (folder / "phrases.txt").write_text("0\t*\t妙, 绝妙\n", encoding="utf-8")
    settings = {"model": MODELS[model], "pooling": pooling, "buckets": buckets, "epochs": epochs}
    settings["phrases"] = folder / "phrases.txt" if buckets else "null"
    path.write_text(CONFIG.format(folder=folder, **settings), encoding="utf-8")
    trained = run_here("train", "-c", path)
    assert trained.status == 0, trained.stderr
    assert float(re.search(r"best dev accuracy ([\d.]+)", trained.stdout)[1]) == 1.0
    return path


def test_reviews_are_judged_and_measured(toy, tmp_path):
    files = ("--predictions", tmp_path / "out.jsonl", "--figures", tmp_path)
    (result,) = records(run_here("evaluate", "-c", toy, "--json", *files))
    assert [path.name for path in tmp_path.glob("*.png")] == ["confusion.png"]
    assert result["n"] == 100 and result["accuracy"] == result["f1"] == 1.0
    assert 0 <= result["calibration_error"] < 0.2 and 0 <= result["unclear"] < 0.2
    assert result["accuracy_clear"] == 1.0
    confusion = result["confusion"]
    assert confusion[0][1] == confusion[1][0] == 0 and confusion[0][0] + confusion[1][1] == 100
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert len(written) == 100 and all(record["label"] == record["reference"] for record in written)

    found = records(run_here("predict", "-c", toy, "--json", "房间不好", "房间 不坏", "电影书很好" * 9))
    assert [record["label"] for record in found] == [0, 1, 1]
    assert all(record.keys() == {"text", "label", "probability"} for record in found)
    assert all(0.5 <= record["probability"] <= 1 for record in found)
    assert run_here("predict", "-c", toy, "房间不好").stdout.startswith("negative\t")


def test_what_tokens_add_is_the_whole_logit_on_arrays_and_through_paddle(toy):
    fast = load_model(toy.parent / "run" / "best").predictor
    assert isinstance(fast, SentimentPredictor)
    vocabularies = fast.trained.vocabularies
    slow = SentimentPredictor(fast.config, TrainedModel.of_network(fast.trained.network, vocabularies))
    texts = ["房间不好", "早餐很坏位置", "电影很好" * 12]  # the last is longer than the network reads
    for one, other in zip(fast.predict(texts), slow.predict(texts), strict=True):
        assert one.label == other.label and one.probability == pytest.approx(other.probability, abs=1e-5)
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-4)
    encoder = ReviewEncoder(fast.config, vocabularies["text"])
    encoded = [encoder.encode(Review(tokens_of(text, "characters"), 0)) for text in texts]
    scores, _ = slow._model.network(*(paddle.to_tensor(array) for array in collate(encoded)[:3]))
    good = paddle.nn.functional.softmax(scores)[:, 1].numpy()
    told = [one.probability if one.label else 1 - one.probability for one in fast.predict(texts)]
    np.testing.assert_allclose(told, good, atol=1e-5)


def test_what_is_not_sure_enough_is_unclear(toy):
    unsure = ("predict", "-c", toy, "-o", "unclear_below=1.0", "房间书")
    assert run_here(*unsure).stdout.startswith("unclear\t")
    (record,) = records(run_here(*unsure, "--json"))
    assert record["label"] is None and 0.5 <= record["probability"] <= 1
    unknown, phrase = run_here("predict", "-c", toy, "龘靐", "绝妙房间").stdout.splitlines()
    assert unknown.startswith("unclear\t")
    if "buckets: 4096" in toy.read_text(encoding="utf-8"):  # a phrase is learned, which no review says
        assert phrase.startswith("negative\t"), phrase


@pytest.mark.parametrize("language", ["zh", "en"])
def test_phrases_that_ship_are_of_both_labels_and_some_of_neither(language):
    phrases = read_phrases(f"phrases_{language}", "characters" if language == "zh" else "words")
    labels: dict[str, set[int]] = {}
    for phrase in phrases:
        labels.setdefault(" ".join(phrase.tokens), set()).add(phrase.label)
    neither = [text for text, both in labels.items() if len(both) == 2]
    good = sum(both == {1} for both in labels.values())
    assert 50 < len(neither) < 100 and 0.35 < good / (len(labels) - len(neither)) < 0.65
    assert ("不 吵" if language == "zh" else "not bad .") in labels


def test_frames_become_phrases(tmp_path):
    file = tmp_path / "phrases.txt"
    file.write_text("# why\n1\t不*。\t吵, 贵\n01\t*\t嗯\n", encoding="utf-8")
    found = [("".join(phrase.tokens), phrase.label) for phrase in read_phrases(str(file), "characters")]
    assert found == [("不吵。", 1), ("不贵。", 1), ("嗯", 0), ("嗯", 1)]


def test_tokens_are_those_of_the_treebank_and_characters():
    tokens = tokens_of("I didn’t like it, it's a so-so film.But 3.5 stars!", "words")
    assert " ".join(tokens) == "i did n't like it , it 's a so-so film . but 3.5 stars !"
    assert tokens_of("i did n't , it 's", "words") == ["i", "did", "n't", ",", "it", "'s"]
    assert tokens_of("Ａ好 &amp; 坏", "characters") == ["a", "好", "&", "坏"]
    assert shortened("abcdefghij", 8) == list("abcdefij") and shortened("abc", 8) == list("abc")


def test_ngrams_fall_into_buckets_by_their_tokens_alone():
    found = ngram_buckets(["a", "b", "a", "b"], 3, 1 << 20)
    assert found.shape == (3, 4) and found[1, 3] == 0 and not found[2, 2:].any()
    assert found[0, 0] == found[0, 2] and found[1, 0] == found[1, 2]
    assert len(np.unique(found[found > 0])) == 2 + 2 + 2  # a, b; ab, ba; aba, bab
    assert found[found > 0].min() > ALWAYS
    assert present(found)[0] == ALWAYS and len(present(found)) == 7
    assert not ngram_buckets(["a"], 3, 64)[1:].any()


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), st.integers(1, 3), st.integers(0, 99))
def test_contributions_and_bias_are_the_logit(tokens, longest, seed):
    table = np.random.default_rng(seed).normal(size=16)
    found = ngram_buckets(tokens, longest, 16)
    logit = table[present(found)].sum()
    assert contributions(found, table).sum() + table[ALWAYS] == pytest.approx(logit)


def test_contributions_of_a_pair_are_shared():
    table = np.zeros(1 << 16)
    found = ngram_buckets(["not", "good", "not"], 2, 1 << 16)
    table[found[0, 0]], table[found[1, 0]] = 1.0, -3.0  # "not", which stands twice, and "not good"
    np.testing.assert_allclose(contributions(found, table), [0.5 - 1.5, -1.5, 0.5])


def test_without_a_linear_machine_no_ngram_has_a_bucket():
    config = SentimentConfig(task="sentiment", linear=LinearConfig(buckets=0))
    encoded = ReviewEncoder(config, Vocabulary([*SPECIAL_TOKENS, "好"])).encode(Review(["好", "x"], 1))
    assert encoded.ids.tolist() == [4, Vocabulary.unk_id] and encoded.buckets.tolist() == [ALWAYS]


def network(**sections):
    paddle.seed(1)
    model = LstmAttentionConfig(embedding_size=4, hidden_size=4, num_layers=1, dropout=0.0)
    return SentimentNetwork(SentimentConfig(task="sentiment", model=model, **sections), 9)


def own_logit(net, ids):
    return net(paddle.to_tensor([ids]), paddle.to_tensor([3]), paddle.to_tensor([[1]]))[1].item()


def test_the_linear_logits_are_those_of_the_shares_in_the_data():
    draws = np.random.default_rng(1)
    kind, right = draws.integers(2, size=5000), draws.random(5000) < 0.8
    labels = np.where(right, kind, 1 - kind)  # four of five reviews are what their word says
    table = fit_linear([np.array([ALWAYS, 2 + one]) for one in kind], labels, 4, 1e-3)
    assert table[ALWAYS] + table[3] == pytest.approx(math.log(4), abs=0.3)
    assert table[ALWAYS] + table[2] == pytest.approx(-math.log(4), abs=0.3)
    table = fit_linear([np.array([ALWAYS])] * 5000, right.astype(int), 4, 1.0)
    assert table[ALWAYS] == pytest.approx(math.log(4), abs=0.2)  # the share of good ones
    assert table.dtype == np.float32 and not fit_linear([np.array([ALWAYS])], labels[:1], 8, 1.0).any()


def test_the_answer_is_the_linear_sum_and_a_share_of_the_network():
    net = network(linear=LinearConfig(buckets=8, network_share=0.3))
    net.eval()
    net.linear_table.set_value(paddle.arange(8, dtype="float32").unsqueeze(1))
    scores, own = net(paddle.to_tensor([[4, 5, 6]]), paddle.to_tensor([3]), paddle.to_tensor([[1, 5, 0]]))
    assert float(scores[0, 1]) == pytest.approx(0.3 * float(own[0]) + 1 + 5, rel=1e-5)


def test_words_become_unknown_in_training_alone():
    net = network(data=SentimentDataConfig(unknown_rate=1.0))
    assert own_logit(net, [4, 5, 6]) == own_logit(net, [7, 8, 4])
    net.eval()
    assert own_logit(net, [4, 5, 6]) != own_logit(net, [7, 8, 4])


def test_the_loss_is_the_mean_by_the_weights_of_the_reviews():
    own = paddle.to_tensor([0.0, 2.0])
    loss = SentimentLoss()(own, own, paddle.to_tensor([1, 0]), paddle.to_tensor([1.0, 0.1]))
    expected = (math.log(2) + 0.1 * math.log1p(math.exp(2.0))) / 1.1
    assert loss.item() == pytest.approx(expected, rel=1e-5)


GOOD, BAD = "好房间", "房间坏"


def predictor():
    """Return a network that has learned nothing beside a linear classifier that knows 好 and 坏."""
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


def test_the_answer_is_that_of_the_command_with_words():
    (expected,) = predictor().predict_records([GOOD])
    with served(predictor(), SentimentEndpoint(LimitsConfig(characters=12))) as client:
        _, record = post(client, "sentiment", text=GOOD)
        assert post(client, "sentiment", text=BAD)[1]["label"] == 0
        for text, told in ((" ", "empty"), ("好" * 13, "12"), ("", "1"), ("🐶", "no Chinese word")):
            status, refused = post(client, "sentiment", text=text)
            assert status == 422 and told in refused["error"]
    words = record.pop("words")
    assert record == {**expected, "language": "zh"} and record["label"] == 1
    assert [word["text"] for word in words] == list(GOOD)
    assert words[0]["weight"] > 5 > max(word["weight"] for word in words[1:])


@needs_chromium
def test_the_tab_colours_the_words(browser):
    endpoint = SentimentEndpoint(LimitsConfig())
    app = app_of((predictor(), [endpoint]))
    with serving(app) as address, opened(browser, address) as page:
        assert page.get_by_role("tab").all_text_contents() == ["Good or bad?"]
        page.click("#sentiment-ask")
        assert page.locator("#sentiment-error").text_content() == "Write a review first, please."
        page.fill("#sentiment-review", BAD)
        page.click("#sentiment-ask")
        page.locator("#sentiment-words .bad").first.wait_for()
        assert page.locator("#sentiment-status").text_content().startswith("Bad, ")
        assert page.locator("#sentiment-words").text_content() == BAD
        page.reload()
        page.locator("#sentiment-words .bad").first.wait_for()  # the address has it
        page.get_by_role("button", name="中文").click()
        assert page.locator("#sentiment-status").text_content().startswith("差评")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_reviews_of_emoji_of_traditional_characters_and_of_nothing(language):
    shipped = paddle_dialog.load(f"sentiment_{language}")
    assert [one.shown for one in shipped.predict(["😀👍", "😡", "👎👎😀"])] == [1, 0, 0]
    with pytest.raises(UserError, match=r"has no .* word"):
        shipped.predict(["😀😡"])
    with pytest.raises(UserError, match="input 2 is nan, and must be a text; leave empty ones out"):
        shipped.predict(["好", float("nan")])
    if language == "zh":
        traditional, plain = shipped.predict(["房間很乾淨，下次還來。", "房间很干净，下次还来。"])
        assert traditional.shown == 1 and traditional.probability == plain.probability
    with pytest.raises(UserError, match="a predictor cannot be pickled"):
        pickle.dumps(shipped)
