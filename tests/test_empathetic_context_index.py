"""Conversations of a store's replies, compared by TF-IDF: hand-computed values, and an independent implementation."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from empathetic_store_toys import TEXTS, make_store, predictor, toy_config
from sklearn.feature_extraction.text import TfidfVectorizer

from tasks.empathetic.data.language import ENGLISH, character_pairs
from tasks.empathetic.selection.context_index import ContextIndex
from tasks.empathetic.selection.store import ReplyStore

SAID = [
    ["my dog died yesterday"],
    ["i won a prize", "what is it ?", "a dog"],
    ["someone stole my bike", "that is awful .", "i loved my bike"],
    ["my bike is new"],
]


VECTORS = np.eye(4, 6, dtype=np.float32)


def index(rows: list[int]) -> ContextIndex:
    return ContextIndex.build([[ENGLISH.tokens_of(turn) for turn in turns] for turns in SAID], rows, VECTORS)


def likeness(turns: list[str], rows: list[int], replies: int) -> list[float]:
    return index(rows).by_words([ENGLISH.tokens_of(turn) for turn in turns], replies).tolist()


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
    found = ours.by_words([ENGLISH.tokens_of(turn) for turn in ("my new bike", "?", "a dog")], 4)
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


def test_by_vectors_a_reply_has_its_nearest_context() -> None:
    vector = np.array([0.6, 0, 0.8, 0, 0, 0], np.float32)
    np.testing.assert_allclose(index([0, 1, 0, 3]).by_vectors(vector, 4), [0.8, 0, 0, 0], atol=1e-6)


def test_the_store_keeps_its_contexts_and_finds_by_them() -> None:
    contexts = (
        [[ENGLISH.tokens_of("my dog died")]] * 2
        + [[ENGLISH.tokens_of("my prize")]] * 2
        + [[ENGLISH.tokens_of("dog prize")]]
    )
    store = make_store(toy_config())
    made = dataclasses.replace(store, contexts=ContextIndex.build(contexts, range(len(TEXTS)), store.vectors))
    again = ReplyStore.from_bytes(made.to_bytes(), "here")
    assert made.contexts is not None and again.contexts is not None
    np.testing.assert_array_equal(again.contexts.terms, made.contexts.terms)
    np.testing.assert_array_equal(again.contexts.rows, made.contexts.rows)
    assert ((again.contexts.vectors * store.vectors).sum(axis=1) > 0.9999).all()
    for name, wanted in (("context_words", {0, 1}), ("context_vectors", None)):
        weights = {"model": 0.0, name: 1.0}
        found = predictor(again, decoding={"rerank": weights}, replies={"candidates": 2, "generate": False})
        (answer,) = found.answer([["the dog died"]], 4)
        (read,) = found.understand(found.read([["the dog died"]]))
        assert read.vector is not None and len(answer.predictions) == 2
        nearest = {*np.argsort(-again.contexts.vectors @ read.vector)[:2].tolist()}
        assert {one.row for one in answer.predictions} == (wanted or nearest)
