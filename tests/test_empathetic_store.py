"""The store of people's replies and the ranking beside the generator's."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from empathetic_store_toys import CONTEXTS, TEXTS, make_store, predictor, toy_config
from empathetic_toys import make_config, make_network, make_vocabulary, predictor_of
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from paddle_dialog.errors import UserError
from tasks.empathetic.answer import ReplyPrediction
from tasks.empathetic.cleaning import editor_of
from tasks.empathetic.config import RepliesConfig, ReplyRerankConfig
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.data.encoding import make_encoder
from tasks.empathetic.data.language import ENGLISH, character_pairs
from tasks.empathetic.data.sources import read_dialogues
from tasks.empathetic.overlap import content_words, echo, overlaps, rejoices_at_denied, repetition
from tasks.empathetic.prediction import EmpatheticPredictor
from tasks.empathetic.reading import ReadContext, log_probs
from tasks.empathetic.rerank import Reranker
from tasks.empathetic.store import ContextIndex, ReplyStore, emotion_bits, highest, store_of_bundle
from tasks.empathetic.store_building import SHARE, emotions_of_replies, likely_emotions, store_of_corpus

SAID = [
    ["my dog died yesterday"],
    ["i won a prize", "what is it ?", "a dog"],
    ["someone stole my bike", "that is awful .", "i loved my bike"],
    ["my bike is new"],
]


def index(rows: list[int]) -> ContextIndex:
    return ContextIndex.build([[ENGLISH.tokens_of(turn) for turn in turns] for turns in SAID], rows)


def likeness(turns: list[str], rows: list[int], replies: int) -> list[float]:
    return index(rows).similarities([ENGLISH.tokens_of(turn) for turn in turns], replies).tolist()


def test_the_cosine_is_that_of_scikit_learn() -> None:
    def text(turns: list[str]) -> str:
        return f"{turns[0]} {turns[-1]} {turns[-1]}"

    ours = index([0, 1, 2, 3])
    vectoriser = TfidfVectorizer(
        token_pattern=r"\S+", sublinear_tf=True, smooth_idf=False, min_df=2, norm=None, stop_words=None
    )
    weights = vectoriser.fit_transform([text(turns) for turns in SAID]).toarray()
    idf = vectoriser.idf_
    weights, query = weights / idf * (idf - 1), vectoriser.transform([text(["my new bike", "?", "a dog"])])
    wanted = query.toarray()[0] / idf * (idf - 1)  # its IDF has 1 added
    wanted = weights @ wanted / np.linalg.norm(weights, axis=1) / np.linalg.norm(wanted)
    found = ours.similarities([ENGLISH.tokens_of(turn) for turn in ("my new bike", "?", "a dog")], 4)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("turn", "pairs"),
    [
        ("他们给我起外号！", ["他们", "们给", "给我", "我起", "起外", "外号"]),
        ("嗯，OK 就是 3号，哦", ["嗯", "ok", "就是", "3", "号", "哦"]),
        ("？！", []),
    ],
)
def test_chinese_turns_are_compared_by_pairs_of_characters(turn: str, pairs: list[str]) -> None:
    assert character_pairs(turn) == pairs


def test_the_last_turn_counts_twice() -> None:
    # "dog" and "bike" stand in two contexts of four each, "my" in three; no other word of the query in two.
    dog, bike = math.log(2) * (1 + math.log(2)), math.log(2)
    mine = math.log(4 / 3)
    own = [math.log(2) * (1 + math.log(3)), mine * (1 + math.log(3))]  # dog and my in the first context
    norm = math.hypot(*own) * math.hypot(dog, bike, mine)
    found = likeness(["my bike", "oh", "dog"], [0, 1, 2, 3], 4)
    assert found[0] == pytest.approx((own[0] * dog + own[1] * mine) / norm, abs=1e-6)


def test_a_reply_has_the_context_most_like_the_conversation() -> None:
    both = likeness(["my bike is new"], [1, 0, 1, 1], 3)
    assert both[1] == pytest.approx(1.0, abs=1e-6)
    assert both[1] == max(likeness(["my bike is new"], [0, 1, 2, 3], 4)) > both[0] and both[2] == 0.0


@pytest.mark.parametrize("turns", [[], [""], ["unheard words"]])
def test_a_conversation_without_known_words_is_like_none(turns: list[str]) -> None:
    assert likeness(turns, [0, 1, 2, 3], 4) == [0.0] * 4


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=40), st.integers(1, 12))
def test_the_search_finds_the_highest_of_all(values: list[int], count: int) -> None:
    exact = sorted(range(len(values)), key=lambda place: (-values[place], place))[:count]
    found = highest(np.array(values, np.float32), count)
    assert [values[place] for place in found] == [values[place] for place in exact]
    assert found == sorted(found, key=lambda place: (-values[place], place)) and len(set(found)) == len(found)


def test_the_file_holds_the_store() -> None:
    store = make_store()
    again = ReplyStore.from_bytes(store.to_bytes(), "here")
    assert list(again.texts) == TEXTS and len(again) == 5
    np.testing.assert_array_equal(again.emotions, store.emotions)
    np.testing.assert_array_equal(again.own, store.own)
    turns = [ENGLISH.tokens_of("the dog won")]
    np.testing.assert_array_equal(again.similarities(turns), store.similarities(turns))
    damaged = bytearray(store.to_bytes())
    damaged[-20:] = bytes(20)
    for content in (b"nonsense", bytes(damaged)):
        with pytest.raises(UserError, match="here: holds no store of replies"):
            ReplyStore.from_bytes(content, "here")
    with pytest.raises(UserError, match="differ in number"):
        ReplyStore.from_bytes(dataclasses.replace(store, own=store.own[:4]).to_bytes(), "here")


def test_people_and_model_are_ordered_by_one_sum() -> None:
    weights = {"model": 0.5, "context_words": 2.0, "person": -0.3, "emotion": 1.0, "candidates": 4}
    found = predictor(decoding={"rerank": weights}, replies={"candidates": 3})
    store = found.store
    assert store is not None
    for context, answer in zip(CONTEXTS, found.answer(CONTEXTS, 10), strict=True):
        (read,) = found.understand(found.read([context]))
        origins = [p.origin for p in answer.predictions]
        assert origins.count("person") == 3 and origins.count("model") == 4
        similar = store.similarities(read.terms)
        sums = []
        for p in answer.predictions:
            likely = log_probs(found.encoder, [p.tokens], read)[0]
            assert p.score == pytest.approx(likely, abs=1e-4)
            sums.append(0.5 * likely + 1.0)
            if p.row is not None:
                assert p.text == store.texts[p.row] and p.similarity == similar[p.row]
                sums[-1] += 2 * similar[p.row] - 0.3
                sums[-1] += answer.probabilities[p.row] / answer.probabilities.max() - 1.0
        assert (np.diff(sums) <= 1e-5).all()
        marked = [record.get("similarity") for record in answer.as_dict()["predictions"]]
        assert [mark is None for mark in marked] == [p.origin == "model" for p in answer.predictions]
    assert "the 3 nearest of 5 stored replies; the best by 0.5 model" in found.decoding_summary()


def test_the_same_answers_alone_and_in_a_batch() -> None:
    weights = {"context_words": 2.0, "overlap_last": 0.3, "echo": 0.5, "repetition": 0.5}
    found = predictor(decoding={"rerank": weights})
    together = [[p.text for p in answer.predictions] for answer in found.answer(CONTEXTS, 5)]
    assert together == [[p.text for p in found.answer([one], 5)[0].predictions] for one in CONTEXTS]


def test_the_store_alone_and_the_generator_alone() -> None:
    people = predictor(
        replies={"generate": False, "candidates": 2}, decoding={"rerank": {"context_words": 1.0, "model": 0}}
    )
    for answer in people.answer(CONTEXTS, 5):
        similar = [p.similarity for p in answer.predictions]
        assert [p.origin for p in answer.predictions] == ["person"] * 2
        assert similar == sorted(similar, reverse=True)
    assert people.decoding_summary() == "the 2 nearest of 5 stored replies; the best by 1 context words"
    assert store_of_bundle(RepliesConfig(store=False), make_store().to_bytes()) is None


def test_a_store_that_is_missing_is_told() -> None:
    with pytest.raises(UserError, match=r"replies\.store: these weights have no store of replies"):
        store_of_bundle(RepliesConfig(store=True), None)
    assert store_of_bundle(RepliesConfig(), None) is None
    with pytest.raises(UserError, match=r"replies\.generate: is false, and so is replies\.store"):
        toy_config(replies={"store": False, "generate": False})


def test_what_a_reply_shares_with_the_turns_by_hand() -> None:
    turns = [["my", "dog", "barked", "."], ["oh", "no"], ["the", "neighbours", "called"]]
    assert content_words(["did", "barking", "dogs", "annoy", "?"]) == {"barki", "dogs", "annoy"}
    reply = ["did", "the", "neighbours", "hear", "the", "dog", "?"]  # neigh, hear, dog
    assert overlaps(reply, turns) == pytest.approx((1 / 3, 1 / 3))
    assert echo(reply, turns) == pytest.approx(2 / 3)
    assert echo(["the", "dog", "barked", "."], turns) == 0.0 == echo([], turns)
    assert overlaps(["oh", "no"], turns) == (0.0, 0.0) == overlaps(reply, [])
    assert repetition(["oh", "no"], turns) == 1.0 and repetition(["oh"], turns) == pytest.approx(0.5)
    assert repetition(["oh"], turns[:1]) == 0.0


def test_a_word_of_the_newest_turn_is_not_counted_again_for_the_ones_before() -> None:
    assert overlaps(["dog"], [["dog"], ["dog"]]) == (1.0, 0.0)


def test_an_echo_is_of_the_speakers_words() -> None:
    assert echo(["the", "neighbours", "?"], [["my", "dog"], ["the", "neighbours"]]) == 0.0


def test_a_reply_of_two_emotions_agrees_by_the_likelier_one() -> None:
    emotions = np.zeros(5, np.uint32)
    emotions[1] = (1 << EMOTIONS.index("sad")) | (1 << EMOTIONS.index("proud"))
    model = predictor(dataclasses.replace(make_store(), emotions=emotions))
    predicted = np.zeros(32)
    for name, probability in {"sad": 0.2, "proud": 0.3, "joyful": 0.5}.items():
        predicted[EMOTIONS.index(name)] = probability
    (context,) = model.read([["my dog died ."]])
    context = dataclasses.replace(context, predicted=predicted)
    reply = ReplyPrediction("a", 0.0, ("a",), "person", row=1)
    assert model.reranker.features["emotion"]([context], [[reply]]) == pytest.approx([0.3 / 0.5])


def test_replies_of_our_own_are_weighed_by_themselves() -> None:
    own = np.array([False, False, True, False, False])
    store = dataclasses.replace(make_store(), own=own)
    first = [
        predictor(
            store,
            decoding={"rerank": {"own": weight, "candidates": 1}},
            replies={"candidates": 5, "generate": False},
        )
        .answer([["my dog died ."]])[0]
        .predictions[0]
        for weight in (50.0, -50.0)
    ]
    assert first[0].text == TEXTS[2] != first[1].text
    assert [one.origin for one in first] == ["written", "person"]


def test_the_likeliest_emotions_of_a_context() -> None:
    config, vocabulary = toy_config(), make_vocabulary()
    model, encoder = make_network(config, len(vocabulary)), make_encoder(config, vocabulary)
    found = predictor()
    for context, names in zip(CONTEXTS, likely_emotions(CONTEXTS, model, encoder), strict=True):
        (read,) = found.understand(found.read([context]))
        likely = {*np.flatnonzero(read.emotions >= SHARE * read.emotions.max()).tolist()}
        assert {EMOTIONS.index(name) for name in names} == likely


def test_the_model_predicts_emotions_for_replies_of_our_own_alone() -> None:
    config, vocabulary = toy_config(), make_vocabulary()
    model, encoder = make_network(config, len(vocabulary)), make_encoder(config, vocabulary)
    named, unnamed = Dialogue(["i won"], "good", "sad", None), Dialogue(["my dog"], "good", None, None)
    other = Dialogue(["my bike"], "oh", None, None)
    bits = emotions_of_replies([[named, unnamed], [other]], {id(named), id(unnamed)}, model, encoder)
    (likely,) = likely_emotions([unnamed.context], model, encoder)
    assert bits.tolist() == [emotion_bits(["sad", *likely]), 0]


def test_replies_of_our_own_are_all_kept(tmp_path: Path) -> None:
    config, vocabulary = toy_config(), make_vocabulary()
    model, encoder = make_network(config, len(vocabulary)), make_encoder(config, vocabulary)
    people = tmp_path / "people.jsonl"
    people.write_text('{"context": ["i won a prize"], "target": "What a good prize!"}\n', encoding="utf-8")
    editor = editor_of(ENGLISH)
    talk = [editor.tidied(one.target) for one in read_dialogues("small_talk")]
    ours = {editor.same_words(ENGLISH.tokens_of(text)) for text in talk}
    store = store_of_corpus(["small_talk", str(people)], config, model, encoder)
    assert store.own.sum() == len(ours) == len(store) - 1
    assert not store.own[list(store.texts).index("What a good prize!")]
    assert not store_of_corpus([str(people)], config, model, encoder).own.any()


def candidate(text: str, score: float) -> ReplyPrediction:
    return ReplyPrediction(text, score, tuple(text.split()))


def plain_predictor(**decoding: object) -> EmpatheticPredictor:
    """Return a random model."""
    settings = {"beam_size": 6, "max_length": 6, **decoding}
    config = make_config(generator={"pointer": True}, decoding=settings)
    vocabulary = make_vocabulary()
    network = make_network(config, len(vocabulary))
    return predictor_of(config, network, vocabulary)


def contexts(found: EmpatheticPredictor, count: int) -> list[ReadContext]:
    return found.understand(found.read(CONTEXTS[:count]))


def texts(found: EmpatheticPredictor, n_best: int = 4) -> list[list[tuple[str, ...]]]:
    return [[p.tokens for p in answer.predictions] for answer in found.answer(CONTEXTS, n_best)]


def test_every_text_stands_once() -> None:
    found = [candidate("oh no !", -1.0), candidate("why ?", -2.0), candidate("oh no !", -1.5)]
    plain = plain_predictor()
    reranker = Reranker(plain.encoder)
    assert reranker.order(contexts(plain, 3), [found, [], found[:1]], ReplyRerankConfig()) == [
        found[:2],
        [],
        found[:1],
    ]


def test_what_was_replied_before_comes_last() -> None:
    found = [candidate("that is awful .", -0.1), candidate("why ?", -2.0), candidate("oh no !", -3.0)]
    plain = plain_predictor()
    reranker = Reranker(plain.encoder)
    asked, weights = contexts(plain, 3), ReplyRerankConfig(overlap_last=1e-6)
    ordered = reranker.order(asked, [found, found, found], weights)
    assert ordered == [found, found, [*found[1:], found[0]]]  # the third conversation has it


@pytest.mark.parametrize(
    ("turn", "reply", "rejoices"),
    [
        ("I'm not happy", "That's wonderful, I'm happy with you!", True),
        ("I didn't pass my exam", "Congratulations on the exam!", True),
        ("I didn't pass my exam", "I am so sorry, that is hard.", False),
        ("I passed my exam, I was not sure of it", "Congratulations!", False),
        ("我没考上大学", "恭喜恭喜！", True),
        ("我高兴不起来", "太好了！", True),
        ("我考上大学了", "恭喜恭喜！", False),
    ],
)
def test_joy_at_what_was_denied(turn: str, reply: str, rejoices: bool) -> None:
    assert rejoices_at_denied(reply, turn) is rejoices


def test_joy_at_what_was_denied_comes_last() -> None:
    plain, found = plain_predictor(), [candidate("wonderful !", -0.1), candidate("oh no !", -3.0)]
    reranker = Reranker(plain.encoder)
    asked = plain.understand(plain.read([["i am not happy"], ["i am happy"]]))
    ordered = reranker.order(asked, [found, found], ReplyRerankConfig(overlap_last=1e-6))
    assert ordered == [found[::-1], found]


def test_without_weights_the_search_decides() -> None:
    assert not ReplyRerankConfig().is_active
    plain = plain_predictor(length_penalty="gnmt")
    assert texts(plain) == texts(
        plain_predictor(length_penalty="gnmt", rerank={"candidates": 6, "model": 3.0})
    )


def test_the_best_is_chosen_from_all_candidates() -> None:
    rerank = {"overlap_last": 2.0, "echo": 0.5, "repetition": 1.0, "candidates": 6}
    assert [found[0] for found in texts(plain_predictor(rerank=rerank), 6)] == [
        found[0] for found in texts(plain_predictor(rerank=rerank), 1)
    ]


@pytest.mark.parametrize(
    "decoding",
    [
        {"strategy": "sample", "top_k": 5},
        {"strategy": "beam"},
    ],
)
def test_the_same_replies_again_alone_and_in_a_batch(decoding: dict[str, object]) -> None:
    rerank = {"overlap_last": 0.3, "overlap_earlier": 0.2, "candidates": 6}
    found = plain_predictor(rerank=rerank, **decoding)
    together = texts(found)
    assert together == texts(plain_predictor(rerank=rerank, **decoding))
    alone = [[p.tokens for p in found.answer([context], 4)[0].predictions] for context in CONTEXTS]
    assert alone == together


def test_the_summary_says_what_decided() -> None:
    mix = {"echo": 0.25, "overlap_last": 0.5, "candidates": 20}
    said = plain_predictor(rerank=mix).decoding_summary()
    assert "beam 20, " in said
    assert said.endswith("the best of 20 by 1 model + 0.5 overlap last + 0.25 echo")
    assert "best of" not in plain_predictor().decoding_summary()


def test_another_strategy_needs_no_other_settings_changed() -> None:
    rerank = {"echo": 0.5, "candidates": 6}
    for strategy in ("greedy", "sample"):
        found = plain_predictor(rerank=rerank, strategy=strategy)
        assert all(answer.predictions for answer in found.answer(CONTEXTS))
        assert ("best of" in found.decoding_summary()) == (strategy == "sample")
