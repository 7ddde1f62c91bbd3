"""The store of people's replies: its file, the search in it, the ranking beside the generator's, a user's own."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
from empathetic_store_toys import CONTEXTS, TEXTS, make_store, predictor, toy_config
from empathetic_toys import make_network, make_vocabulary
from hypothesis import given
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from tasks.empathetic.data.encoding import make_encoder
from tasks.empathetic.data.language import ENGLISH
from tasks.empathetic.data.sources import read_dialogues
from tasks.empathetic.reading.vectors import log_probs, reply_vectors
from tasks.empathetic.selection.building import MOST_USER_WORDS, find_store, store_of_corpus, store_of_file
from tasks.empathetic.selection.editing import editor_of
from tasks.empathetic.selection.overlap import content_words, echo, overlaps, repetition
from tasks.empathetic.selection.recall import recall_at_1
from tasks.empathetic.selection.store import ReplyStore, highest


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=40), st.integers(1, 12))
def test_the_search_finds_the_highest_of_all(values: list[int], count: int) -> None:
    exact = sorted(range(len(values)), key=lambda place: (-values[place], place))[:count]
    found = highest(np.array(values, np.float32), count)
    assert [values[place] for place in found] == [values[place] for place in exact]
    assert found == sorted(found, key=lambda place: (-values[place], place)) and len(set(found)) == len(found)


def test_the_file_holds_the_store() -> None:
    store = make_store(toy_config())
    again = ReplyStore.from_bytes(store.to_bytes(), "here")
    assert list(again.texts) == TEXTS and len(again) == 5
    assert ((again.vectors * store.vectors).sum(axis=1) > 0.9999).all()
    np.testing.assert_allclose(np.linalg.norm(again.vectors, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(again.log_probs, store.log_probs, rtol=1e-3)
    np.testing.assert_array_equal(again.emotions, store.emotions)
    assert again.contexts is None
    with pytest.raises(UserError, match="here: holds no store of replies"):
        ReplyStore.from_bytes(b"nonsense", "here")


def test_vectors_and_probabilities_are_those_of_the_network_asked_alone() -> None:
    config, vocabulary = toy_config(), make_vocabulary()
    network, store = make_network(config, len(vocabulary)), make_store(toy_config())
    for row, text in enumerate(TEXTS):
        ids = [2, *vocabulary.encode(ENGLISH.tokens_of(text))]
        with paddle.no_grad():
            alone = network.reply_vectors(paddle.to_tensor([ids]), paddle.to_tensor([len(ids)])).numpy()[0]
        np.testing.assert_allclose(store.vectors[row], alone, atol=1e-5)


def test_people_and_model_are_ordered_by_one_sum() -> None:
    weights = {"model": 0.5, "mutual_information": 0.3, "selection": 2.0, "emotion": 1.0, "candidates": 4}
    found = predictor(
        decoding={"beam_size": 4, "max_length": 6, "rerank": weights}, replies={"candidates": 3}
    )
    store = found.store
    assert store is not None
    for context, answer in zip(CONTEXTS, found.answer(CONTEXTS, 10), strict=True):
        (read,) = found.understand(found.read([context]))
        origins = [p.origin for p in answer.predictions]
        assert origins.count("person") == 3 and origins.count("model") == 4
        sums = []
        for p in answer.predictions:
            tokens = p.tokens
            cosine = float(reply_vectors(found.network, found.vocabulary, [tokens])[0] @ read.vector)
            agreement = 1.0
            if p.row is not None:
                assert p.near is not None and p.text == store.texts[p.row]
                assert p.near.selection == pytest.approx(cosine, abs=1e-5)
                agreement = answer.probabilities[p.row] / answer.probabilities.max()
            likely = log_probs(found.network, found.encoder, [tokens], read.packed)[0]
            assert p.score == pytest.approx(likely, abs=1e-4)
            blank = log_probs(found.network, found.encoder, [tokens])[0]
            sums.append(0.5 * likely - 0.3 * blank + 2 * cosine + agreement)
        assert (np.diff(sums) <= 1e-5).all()
        marked = [record.get("similarity") for record in answer.as_dict()["predictions"]]
        assert [mark is None for mark in marked] == [p.origin == "model" for p in answer.predictions]
    assert "the 3 nearest of 5 stored replies; the best by 0.5 model" in found.decoding_summary()


def test_the_same_answers_alone_and_in_a_batch() -> None:
    weights = {"selection": 2.0, "mutual_information": 0.3, "echo": 0.5, "repetition": 0.5}
    found = predictor(decoding={"beam_size": 4, "max_length": 6, "rerank": weights})
    together = [[p.text for p in answer.predictions] for answer in found.answer(CONTEXTS, 5)]
    assert together == [[p.text for p in found.answer([one], 5)[0].predictions] for one in CONTEXTS]


def test_the_store_alone_and_the_generator_alone() -> None:
    people = predictor(
        replies={"generate": False, "candidates": 2}, decoding={"rerank": {"selection": 1.0, "model": 0}}
    )
    for answer in people.answer(CONTEXTS, 5):
        similar = [p.near.selection for p in answer.predictions if p.near is not None]
        assert [p.origin for p in answer.predictions] == ["person"] * 2 and similar == sorted(
            similar, reverse=True
        )
    assert people.decoding_summary() == "the 2 nearest of 5 stored replies; the best by 1 selection"
    config, vocabulary = toy_config(replies={"store": False}), make_vocabulary()
    encoder = make_encoder(config, vocabulary)
    network = make_network(config, len(vocabulary))
    assert find_store(config, make_store(config).to_bytes(), network, encoder) is None


def test_a_store_that_is_missing_or_of_another_model_is_told() -> None:
    vocabulary = make_vocabulary()
    config = toy_config(replies={"store": True})
    encoder, network = make_encoder(config, vocabulary), make_network(config, len(vocabulary))
    with pytest.raises(UserError, match=r"replies\.store: these weights have no store of replies"):
        find_store(config, None, network, encoder)
    assert find_store(toy_config(), None, network, encoder) is None
    content = make_store(config).to_bytes()
    found = find_store(config, content, network, encoder)
    assert found is not None and list(found.texts) == TEXTS
    with pytest.raises(UserError, match="has vectors of 6 numbers, and the model of 7"):
        find_store(toy_config(selection={"size": 7}), content, network, encoder)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            {"replies": {"file": "x.txt"}, "selection": {"size": 0}},
            "replies.file: needs a model that chooses",
        ),
        (
            {"decoding": {"rerank": {"context_vectors": 1.0}}, "selection": {"size": 0}},
            "rerank.context_vectors: needs",
        ),
        ({"decoding": {"rerank": {"selection": 1.0}}, "selection": {"size": 0}}, "rerank.selection: needs"),
        (
            {"replies": {"store": False, "generate": False}},
            "replies.generate: is false, and so is replies.store",
        ),
    ],
)
def test_settings_that_contradict_each_other(sections: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said.replace(".", r"\.")):
        toy_config(**sections)


def own_store(path: Path, seed: int = 1, cache: Path | None = None) -> ReplyStore:
    config, vocabulary = toy_config(), make_vocabulary()
    network = make_network(config, len(vocabulary), seed)
    return store_of_file(path, network, make_encoder(config, vocabulary), cache)


def test_a_users_file_is_the_store(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("\ufeffOh no!\n\n \t\nGood  dog .\r\nOh no!\nqwrtz zxcvb 😭\n", encoding="utf-8")
    store = own_store(file)
    assert list(store.texts) == ["Oh no!", "Good dog .", "qwrtz zxcvb 😭"] and not store.emotions.any()
    answer = predictor(store).answer([["my dog"]], 99)[0]
    assert {p.text for p in answer.predictions if p.origin == "person"} == set(store.texts)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"fine\n" + b"word " * (MOST_USER_WORDS + 1) + b"\n",
            ":2: the reply has 65 words, and 64 are the most",
        ),
        (b"fine\n" + b"x " * 1_000_000, ":2: the reply has 1,000,000 words"),
        (b"\n \n", ": has no reply; give one reply a line"),
        (b"", "the file is empty"),
        ("caf\u00e9".encode("latin-1"), ":1: not UTF-8"),
    ],
    ids=["long", "enormous", "blank", "empty", "latin"],
)
def test_a_faulty_file_of_replies_is_told(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "mine.txt"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        own_store(file)
    assert str(caught.value).startswith(str(file)) and said in str(caught.value)


def test_what_the_model_makes_of_a_file_is_kept_until_either_changes(tmp_path: Path) -> None:
    file, cache = tmp_path / "mine.txt", tmp_path / "mine.txt.vectors.safetensors"
    file.write_text("Oh no!\nGood dog .\n", encoding="utf-8")
    first = own_store(file, cache=cache)
    written = cache.read_bytes()
    again = own_store(file, cache=cache)
    assert ((again.vectors * first.vectors).sum(axis=1) > 0.9999).all() and cache.read_bytes() == written
    own_store(file, seed=2, cache=cache)
    assert cache.read_bytes() != written  # another model
    written = cache.read_bytes()
    file.write_text("Oh no!\nGood cat .\n", encoding="utf-8")
    assert list(own_store(file, seed=2, cache=cache).texts) == ["Oh no!", "Good cat ."]
    assert cache.read_bytes() != written
    with pytest.raises(UserError, match="cannot be written"):
        own_store(file, cache=tmp_path / "none" / "x")


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


def test_recall_by_hand_and_by_chance() -> None:
    eye = np.eye(4, dtype=np.float32)
    assert recall_at_1(eye, eye, "abcd", 1, candidates=4) == 1.0
    assert recall_at_1(eye, eye[[1, 0, 2, 3]], "abcd", 1, candidates=4) == 0.5
    assert recall_at_1(eye, eye, "aaab", 1, candidates=2) == 1.0  # the same reply is no wrong one
    assert recall_at_1(eye, eye, "aaab", 1, candidates=3) is None
    rng = np.random.default_rng(0)
    contexts, replies = rng.normal(size=(2, 1000, 8))
    assert recall_at_1(contexts, replies, range(1000), 1, candidates=5) == pytest.approx(0.2, abs=0.05)


def test_replies_of_our_own_are_marked_and_weighed() -> None:
    config = toy_config()
    own = np.array([False, False, True, False, False])
    store = dataclasses.replace(make_store(config), own=own)
    again = ReplyStore.from_bytes(store.to_bytes(), "here")
    assert again.own is not None and again.own.tolist() == own.tolist()
    with pytest.raises(UserError, match="differ in number"):
        ReplyStore.from_bytes(dataclasses.replace(store, own=own[:4]).to_bytes(), "here")
    first = [
        predictor(
            store,
            decoding={"rerank": {"own": weight, "candidates": 1}},
            replies={"candidates": 5, "generate": False},
        )
        .answer([["my dog died ."]])[0]
        .predictions[0]
        .text
        for weight in (50.0, -50.0)
    ]
    assert first[0] == TEXTS[2] != first[1]


def test_replies_of_our_own_are_all_kept(tmp_path: Path) -> None:
    config = toy_config(selection={"size": 0})
    vocabulary = make_vocabulary()
    model, encoder = make_network(config, len(vocabulary)), make_encoder(config, vocabulary)
    people = tmp_path / "people.jsonl"
    people.write_text('{"context": ["i won a prize"], "target": "What a good prize!"}\n', encoding="utf-8")
    editor = editor_of(ENGLISH)
    talk = [editor.tidied(one.target) for one in read_dialogues("small_talk")]
    ours = {editor.same_words(ENGLISH.tokens_of(text)) for text in talk}
    store = store_of_corpus(["small_talk", str(people)], config, model, encoder)
    assert store.own is not None and store.own.sum() == len(ours) == len(store) - 1
    assert not store.own[list(store.texts).index("What a good prize!")]
    assert store_of_corpus([str(people)], config, model, encoder).own is None
