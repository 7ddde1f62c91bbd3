"""The order of the replies by a mix of scores, and the n-grams of the training replies."""

from __future__ import annotations

import math

import numpy as np
import paddle
import pytest
from empathetic_toys import make_config, make_network, make_vocabulary, predictor_of

from paddle_dialog.errors import UserError
from tasks.empathetic.answering.prediction import EmpatheticPredictor
from tasks.empathetic.config import ReplyRerankConfig
from tasks.empathetic.data.language import ENGLISH
from tasks.empathetic.data.sources import read_dialogues
from tasks.empathetic.reading.context import ReadContext
from tasks.empathetic.selection.candidate import ReplyPrediction
from tasks.empathetic.selection.denial import rejoices_at_denied
from tasks.empathetic.selection.reply_ngrams import ReplyNgrams
from tasks.empathetic.selection.rerank import REPLY_NGRAMS, Reranker, consensus
from tasks.empathetic.task import EmpatheticTask

STOCK = ["i", "am", "sorry", "to", "hear", "that", "."]
REPLIES = [STOCK] * 40 + [["that", "is", "awful", "."]] * 9 + [["oh", "no", "!"]] * 2
CONTEXTS = [["my dog died ."], ["i won a prize"], ["someone stole my bike", "that is awful .", "my bike !"]]


def candidate(text: str, score: float) -> ReplyPrediction:
    return ReplyPrediction(text, score, tuple(text.split()))


def predictor(**decoding: object) -> EmpatheticPredictor:
    """Return a random model with the n-grams of REPLIES."""
    settings = {"beam_size": 6, "max_length": 6, **decoding}
    config = make_config(generator={"pointer": True}, decoding=settings)
    vocabulary = make_vocabulary()
    network = make_network(config, len(vocabulary))
    return predictor_of(config, network, vocabulary, reply_ngrams=ReplyNgrams.of(REPLIES))


def contexts(found: EmpatheticPredictor, count: int) -> list[ReadContext]:
    return found.understand(found.read(CONTEXTS[:count]))


def texts(found: EmpatheticPredictor, n_best: int = 4) -> list[list[tuple[str, ...]]]:
    return [[p.tokens for p in answer.predictions] for answer in found.answer(CONTEXTS, n_best)]


def test_ngrams_are_counted_with_begin_and_end() -> None:
    ngrams = ReplyNgrams.of(REPLIES)
    assert ngrams.count("<bos>", "i", "am", "sorry") == 40
    assert ngrams.count("that") == 49 and ngrams.count(".", "<eos>") == 49
    assert ngrams.count("oh") == 0  # stands twice, and twice is not kept


def test_familiarity_by_hand() -> None:
    ngrams = ReplyNgrams.of(REPLIES)
    # (<bos> that), (that is), (is fine), (fine <eos>) stand 9, 9, 0, 0 times.
    assert ngrams.familiarity(["that", "is", "fine"], 2) == pytest.approx(2 * math.log(10) / 4)
    assert ngrams.familiarity(STOCK, 4) == pytest.approx(math.log(41))
    assert ngrams.familiarity(["i"], 4) == 0.0 == ngrams.familiarity([], 4)


def test_the_file_holds_the_counts() -> None:
    ngrams = ReplyNgrams.of(REPLIES)
    again = ReplyNgrams.from_bytes(ngrams.to_bytes(), "here")
    assert again.to_bytes() == ngrams.to_bytes() and again.count("sorry", "to", "hear") == 40
    assert ReplyNgrams.from_bytes(ReplyNgrams({}).to_bytes(), "here").count("i") == 0
    with pytest.raises(UserError, match="here: holds no n-gram counts"):
        ReplyNgrams.from_bytes(b"nonsense", "here")


def test_a_stock_reply_is_demoted_and_keeps_its_score() -> None:
    found = [candidate(" ".join(STOCK), -0.5), candidate("he was a good dog", -0.9)]
    plain = predictor()
    for weight, first in ((0.0, 0), (0.05, 0), (0.2, 1)):  # familiarity 3.7 against 0; 0.4 / 3.7 = 0.11
        reranker = Reranker(plain.network, plain.encoder, ReplyNgrams.of(REPLIES))
        (ordered,) = reranker.order(contexts(plain, 1), [found], ReplyRerankConfig(familiarity=weight))
        assert ordered == [found[first], found[1 - first]]


def test_every_text_stands_once() -> None:
    found = [candidate("oh no !", -1.0), candidate("why ?", -2.0), candidate("oh no !", -1.5)]
    plain = predictor()
    reranker = Reranker(plain.network, plain.encoder, None)
    assert reranker.order(contexts(plain, 3), [found, [], found[:1]], ReplyRerankConfig()) == [
        found[:2],
        [],
        found[:1],
    ]


def test_what_was_replied_before_comes_last() -> None:
    found = [candidate("that is awful .", -0.1), candidate("why ?", -2.0), candidate("oh no !", -3.0)]
    plain = predictor()
    reranker = Reranker(plain.network, plain.encoder, None)
    asked, weights = contexts(plain, 3), ReplyRerankConfig(length=0.01)
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
    reranker = Reranker(plain.network, plain.encoder, None)
    asked = plain.understand(plain.read([["i am not happy"], ["i am happy"]]))
    ordered = reranker.order(asked, [found, found], ReplyRerankConfig(length=0.01))
    assert ordered == [found[::-1], found]


def test_without_weights_the_search_decides() -> None:
    assert not ReplyRerankConfig().is_active
    plain = predictor(length_penalty="gnmt")
    assert texts(plain) == texts(predictor(length_penalty="gnmt", rerank={"candidates": 6, "model": 3.0}))


def test_the_unconditional_score_is_that_of_the_network_without_a_context() -> None:
    found = predictor()
    reply = ["my", "dog", "died", "qwrtz"]
    (score,) = found.reranker.unconditional([reply])
    blank, _ = found.encoder.pack(found.encoder.context([]))
    ids = found.vocabulary.encode(reply)
    with paddle.no_grad():
        state = found.network.encode(paddle.to_tensor(blank[None]), paddle.to_tensor([1]))
        total = 0.0
        for previous, following in zip([2, *ids], [*ids, 3], strict=True):
            scores, state = found.network.step(paddle.to_tensor([previous]), state)
            total += float(scores[0, following])
    assert score == pytest.approx(total / 5, rel=1e-4)
    assert found.reranker.unconditional([]).shape == (0,)


def test_mutual_information_orders_by_what_the_context_adds() -> None:
    wide = predictor(rerank={"mutual_information": 0.7, "candidates": 6})
    changed = False
    for answer, before in zip(wide.answer(CONTEXTS, 6), texts(predictor(), 6), strict=True):
        replies = answer.predictions
        blank = wide.reranker.unconditional([p.tokens for p in replies])
        sums = np.array([p.score for p in replies]) - 0.7 * blank
        assert (np.diff(sums) <= 0).all() and len(replies) == 6
        changed |= [p.tokens for p in replies] != before
    assert changed


def test_the_best_is_chosen_from_all_candidates() -> None:
    rerank = {"familiarity": 2.0, "length": 0.5, "consensus": 1.0, "candidates": 6}
    assert [found[0] for found in texts(predictor(rerank=rerank), 6)] == [
        found[0] for found in texts(predictor(rerank=rerank), 1)
    ]


def test_consensus_by_hand() -> None:
    # (a b) has a, b, ab; (a c) has a, c, ac; (b) has b: F1 2/6, 2/4 and 0.
    assert consensus([["a", "b"], ["a", "c"], ["b"]]) == pytest.approx([(1 / 3 + 1 / 2) / 2, 1 / 6, 1 / 4])
    assert consensus([["a"]]).tolist() == [0.0] and consensus([]).tolist() == []
    assert consensus([[], []]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "decoding",
    [
        {"strategy": "sample", "top_k": 5},
        {"strategy": "beam"},
    ],
)
def test_the_same_replies_again_alone_and_in_a_batch(decoding: dict[str, object]) -> None:
    rerank = {"mutual_information": 0.3, "familiarity": 0.2, "candidates": 6}
    found = predictor(rerank=rerank, **decoding)
    together = texts(found)
    assert together == texts(predictor(rerank=rerank, **decoding))
    alone = [[p.tokens for p in found.answer([context], 4)[0].predictions] for context in CONTEXTS]
    assert alone == together


def test_greedy_answers_of_a_training_run_are_not_reranked() -> None:
    found = predictor(rerank={"familiarity": 5.0})
    found.reranker._ngrams = None
    assert all(len(answer.predictions) == 1 for answer in found.greedy(CONTEXTS))
    with pytest.raises(UserError, match=r"decoding\.rerank\.familiarity: needs reply_ngrams"):
        found.answer(CONTEXTS)


def test_the_summary_says_what_decided() -> None:
    mix = {"familiarity": 0.25, "mutual_information": 0.5, "candidates": 20}
    said = predictor(rerank=mix).decoding_summary()
    assert "beam 20, " in said
    assert said.endswith("the best of 20 by 1 model + 0.5 mutual information + 0.25 familiarity")
    assert "best of" not in predictor().decoding_summary()


def test_a_bundle_carries_the_ngrams_and_no_state_of_the_run() -> None:
    task = EmpatheticTask()
    config = make_config(emotion={"hints": False}, data={"train": "sample", "dev": None})
    data = task.prepare_data(config, None)
    files = task.bundle_files(config, data.vocabularies, {**data.files, "optimizer.safetensors": b"large"})
    assert files == data.files and list(files) == [REPLY_NGRAMS]
    expected = ReplyNgrams.of(ENGLISH.tokens_of(d.target) for d in read_dialogues("sample"))
    found = ReplyNgrams.from_bytes(files[REPLY_NGRAMS], "here")
    assert found.count("i") == expected.count("i") > 2
    assert task.bundle_files(config, data.vocabularies, {}) == {}


def test_another_strategy_needs_no_other_settings_changed() -> None:
    rerank = {"familiarity": 0.5, "candidates": 6}
    for strategy in ("greedy", "sample"):
        found = predictor(rerank=rerank, strategy=strategy)
        assert all(answer.predictions for answer in found.answer(CONTEXTS))
        assert ("best of" in found.decoding_summary()) == (strategy == "sample")
