"""The order of the replies by a mix of scores."""

from __future__ import annotations

import pytest
from empathetic_toys import make_config, make_network, make_vocabulary, predictor_of

from tasks.empathetic.answer import ReplyPrediction
from tasks.empathetic.config import ReplyRerankConfig
from tasks.empathetic.overlap import rejoices_at_denied
from tasks.empathetic.prediction import EmpatheticPredictor
from tasks.empathetic.reading import ReadContext
from tasks.empathetic.rerank import Reranker

CONTEXTS = [["my dog died ."], ["i won a prize"], ["someone stole my bike", "that is awful .", "my bike !"]]


def candidate(text: str, score: float) -> ReplyPrediction:
    return ReplyPrediction(text, score, tuple(text.split()))


def predictor(**decoding: object) -> EmpatheticPredictor:
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
    plain = predictor()
    reranker = Reranker(plain.encoder)
    assert reranker.order(contexts(plain, 3), [found, [], found[:1]], ReplyRerankConfig()) == [
        found[:2],
        [],
        found[:1],
    ]


def test_what_was_replied_before_comes_last() -> None:
    found = [candidate("that is awful .", -0.1), candidate("why ?", -2.0), candidate("oh no !", -3.0)]
    plain = predictor()
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
    plain, found = predictor(), [candidate("wonderful !", -0.1), candidate("oh no !", -3.0)]
    reranker = Reranker(plain.encoder)
    asked = plain.understand(plain.read([["i am not happy"], ["i am happy"]]))
    ordered = reranker.order(asked, [found, found], ReplyRerankConfig(overlap_last=1e-6))
    assert ordered == [found[::-1], found]


def test_without_weights_the_search_decides() -> None:
    assert not ReplyRerankConfig().is_active
    plain = predictor(length_penalty="gnmt")
    assert texts(plain) == texts(predictor(length_penalty="gnmt", rerank={"candidates": 6, "model": 3.0}))


def test_the_best_is_chosen_from_all_candidates() -> None:
    rerank = {"overlap_last": 2.0, "echo": 0.5, "repetition": 1.0, "candidates": 6}
    assert [found[0] for found in texts(predictor(rerank=rerank), 6)] == [
        found[0] for found in texts(predictor(rerank=rerank), 1)
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
    found = predictor(rerank=rerank, **decoding)
    together = texts(found)
    assert together == texts(predictor(rerank=rerank, **decoding))
    alone = [[p.tokens for p in found.answer([context], 4)[0].predictions] for context in CONTEXTS]
    assert alone == together


def test_the_summary_says_what_decided() -> None:
    mix = {"echo": 0.25, "overlap_last": 0.5, "candidates": 20}
    said = predictor(rerank=mix).decoding_summary()
    assert "beam 20, " in said
    assert said.endswith("the best of 20 by 1 model + 0.5 overlap last + 0.25 echo")
    assert "best of" not in predictor().decoding_summary()


def test_another_strategy_needs_no_other_settings_changed() -> None:
    rerank = {"echo": 0.5, "candidates": 6}
    for strategy in ("greedy", "sample"):
        found = predictor(rerank=rerank, strategy=strategy)
        assert all(answer.predictions for answer in found.answer(CONTEXTS))
        assert ("best of" in found.decoding_summary()) == (strategy == "sample")
