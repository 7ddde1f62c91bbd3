"""Metrics of replies and emotions, and what a run shows of a model, against values by hand."""

from __future__ import annotations

import numpy as np
import pytest
from empathetic_toys import (
    DIALOGUES,
    judged_predictor,
    make_config,
    make_network,
    make_vocabulary,
    predictor_of,
)

from paddle_dialog.data.training_data import EncodedData, TrainingData
from paddle_dialog.metrics import has_phrase, has_repeated_ngram
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, collate
from paddle_dialog.tasks.empathetic.evaluation import evaluate, glance_accuracy, reply_metrics
from paddle_dialog.tasks.empathetic.task import TASK


def _replies(*texts):
    return [text.split() for text in texts]


def test_a_stock_phrase_has_its_words_in_a_row():
    texts = (
        "i am so sorry to hear that .",
        "sorry , to hear it hurts",
        "that is great",
        "sorry to heart",
        "",
    )
    found = [has_phrase(reply, ("sorry", "to", "hear")) for reply in _replies(*texts)]
    assert found == [True, False, False, False, False]


def test_repeated_ngrams_may_overlap():
    replies = _replies("a b c d a b c d a b c d", "a a a a a", "a a a a", "a b c d e", "a b c a b c", "")
    # The first has abcd three times, the second aaaa twice; the fifth repeats only abc.
    assert [has_repeated_ngram(reply, 4) for reply in replies] == [True, True, False, False, False, False]
    assert sum(has_repeated_ngram(reply, 3) for reply in replies) == 4


def test_reply_metrics_together():
    hypotheses = _replies("the cat sat on a mat", "the dog ran")
    references = _replies("the cat sat on the mat", "the dog ran")
    scores = reply_metrics(hypotheses, references)
    # Matching n-grams by hand: 8/9, 5/7, 3/5 and 1/3; nine tokens on both sides, so no brevity penalty.
    assert scores.pop("bleu") == pytest.approx(100 * (8 / 9 * 5 / 7 * 3 / 5 * 1 / 3) ** 0.25)
    assert scores == {
        "distinct_1": 8 / 9,
        "distinct_2": 1.0,
        "unique_replies": 1.0,
        "stock_replies": 0.0,
        "repeated_4grams": 0.0,
        "mean_length": 4.5,
    }


def test_accuracy_counts_the_annotated_dialogues_alone_and_a_run_shows_it() -> None:
    config, vocabulary = make_config(), make_vocabulary()
    network, dataset = (
        make_network(config, len(vocabulary)),
        DialogueDataset(DIALOGUES, config, vocabulary, 20),
    )
    predictor = predictor_of(config, network, vocabulary)
    guesses = np.stack(predictor.predict_emotions([d.context for d in DIALOGUES])).argmax(-1)
    labels = [EMOTIONS[guesses[0]], EMOTIONS[(guesses[1] + 1) % 32], None]
    judged = [Dialogue(d.context, d.target, e) for d, e in zip(DIALOGUES, labels, strict=True)]
    assert glance_accuracy(predictor, judged) == 0.5
    assert glance_accuracy(predictor, [Dialogue(["hello"], "hi")]) is None
    encoded = EncodedData(dataset, dataset.lengths)
    data = TrainingData(encoded, encoded, {"text": vocabulary}, collate)
    for count in (0, 2):
        shown = TASK.display(config, network, data, count)
        assert len(shown.texts) == count
        assert shown.scalars == {"emotion_accuracy": glance_accuracy(predictor, DIALOGUES)}


def test_no_switch_of_the_replies_moves_the_protocol() -> None:
    judged = judged_predictor()
    found = evaluate(judged, "sample", None)
    judged.judge = None
    protocol = evaluate(judged, "sample", None)
    answers = found.pop("answers")
    assert found == protocol and "beam" in found["decoding"]
    assert answers["bleu"] != found["bleu"] and answers["emotion_accuracy"] is not None
    assert set(answers["origins"]) <= {"written", "reflected", "model", "care"} and sum(
        answers["origins"].values()
    ) == pytest.approx(1)
    assert "by the judge" in answers["decoding"]
