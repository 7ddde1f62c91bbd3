"""Metrics of replies and emotions, and what figures show of a model, against values by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from empathetic_toys import DIALOGUES, make_config, make_network, make_vocabulary, predictor_of

from paddle_dialog.data.training_data import EncodedData, TrainingData
from paddle_dialog.tasks.empathetic.data.dataset import DialogueDataset, collate
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.evaluation import (
    emotion_accuracy,
    mean_length,
    repeated_ngrams,
    reply_metrics,
    stock_replies,
    unique_replies,
)
from paddle_dialog.tasks.empathetic.figures import dev_emotion_accuracy, emotion_probabilities
from paddle_dialog.tasks.empathetic.task import TASK


def _replies(*texts):
    return [text.split() for text in texts]


def test_stock_replies_need_the_three_words_in_a_row():
    replies = _replies(
        "i am so sorry to hear that .", "sorry , to hear it hurts", "that is great", "sorry to heart", ""
    )
    assert stock_replies(replies) == 1 / 5


def test_unique_replies():
    assert unique_replies(_replies("a b", "a b", "b a", "a b .")) == 3 / 4


def test_repeated_4grams_counts_replies_not_grams():
    replies = _replies("a b c d a b c d a b c d", "a a a a a", "a a a a", "a b c d e", "a b c a b c", "")
    # The first has abcd three times, the second aaaa twice; the fifth repeats only abc.
    assert repeated_ngrams(replies, 4) == 2 / 6
    assert repeated_ngrams(replies, 3) == 4 / 6


def test_mean_length():
    assert mean_length(_replies("a b c", "", "d e")) == pytest.approx(5 / 3)


def test_emotion_accuracy_leaves_out_what_is_not_annotated():
    assert emotion_accuracy(["sad", "sad", "proud", "sad"], ["sad", "proud", "proud", None]) == 2 / 3
    assert emotion_accuracy(["sad"], [None]) is None
    with pytest.raises(ValueError):
        emotion_accuracy(["sad"], [])


def _sure_of(label, probability):
    rest = (1 - probability) / (len(EMOTIONS) - 1)
    return np.array([probability if name == label else rest for name in EMOTIONS])


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


def test_no_reply_cannot_be_measured():
    for metric in (unique_replies, stock_replies, mean_length):
        with pytest.raises(ValueError, match="no reply"):
            metric([])


def make(family: str = "transformer", dialogues: Sequence[Dialogue] = DIALOGUES, **sections: Any) -> Any:
    """Return a random network with its dataset."""
    config, vocabulary = make_config(family, **sections), make_vocabulary()
    dataset = DialogueDataset(dialogues, config, vocabulary, 20)
    return config, make_network(config, len(vocabulary)), dataset, vocabulary


def test_probabilities_are_those_of_the_predictor_in_the_order_asked_for() -> None:
    config, network, dataset, vocabulary = make()
    predictor = predictor_of(config, network, vocabulary)
    answers = predictor.answer([dialogue.context for dialogue in DIALOGUES], 1)
    found = emotion_probabilities(network, dataset, [2, 0, 1], batch_size=2)
    expected = np.stack([answers[index].probabilities for index in (2, 0, 1)])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_accuracy_counts_the_annotated_dialogues_alone() -> None:
    _, network, dataset, _ = make()
    guesses = emotion_probabilities(network, dataset, [0, 1, 2], 2).argmax(-1)
    right, wrong = EMOTIONS[guesses[0]], EMOTIONS[(guesses[1] + 1) % 32]
    labels = [right, wrong, None]
    judged = [Dialogue(d.context, d.target, e) for d, e in zip(DIALOGUES, labels, strict=True)]
    _, _, dataset, _ = make(dialogues=judged)
    assert dev_emotion_accuracy(network, dataset, 2) == 0.5
    _, _, dataset, _ = make(dialogues=[Dialogue(["hello"], "hi")])
    assert dev_emotion_accuracy(network, dataset, 2) is None


@pytest.mark.parametrize("count", [0, 2])
def test_a_run_shows_examples_and_the_accuracy(count: int) -> None:
    config, network, dataset, vocabulary = make()
    encoded = EncodedData(dataset, dataset.lengths)
    data = TrainingData(encoded, encoded, {"text": vocabulary}, collate)
    shown = TASK.display(config, network, data, count)
    assert len(shown.texts) == count
    assert shown.scalars == {"emotion_accuracy": dev_emotion_accuracy(network, dataset, 8)}
