"""Metrics on replies and emotions, against values counted by hand."""

import numpy as np
import pytest

from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.evaluation import (
    calibration_error,
    emotion_accuracy,
    mean_length,
    repeated_ngrams,
    reply_metrics,
    stock_replies,
    unique_replies,
)


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


def test_calibration_error_is_the_weighted_gap_of_each_fifteenth():
    gold = ["sad", "proud", "sad", "sad", None]
    probabilities = np.stack([_sure_of("sad", p) for p in (0.50, 0.52, 0.93, 0.61, 0.99)])
    # bins (7/15, 8/15]: one of two right, sure by 0.51; (13/15, 14/15] and (9/15, 10/15]: right, 0.93 and 0.61
    expected = (2 * abs(0.5 - 0.51) + (1 - 0.93) + (1 - 0.61)) / 4
    assert calibration_error(probabilities, gold) == pytest.approx(expected)
    # The edge 10/15 belongs below it, one bin with 0.61: a right and a wrong one share their gap.
    edge = np.stack([_sure_of("sad", 0.61), _sure_of("sad", 10 / 15 - 1e-9)])
    assert calibration_error(edge, ["sad", "proud"]) == pytest.approx(abs(1 - 0.61 - 10 / 15) / 2)
    assert calibration_error(probabilities[:1], [None]) is None
    with pytest.raises(ValueError):
        calibration_error(probabilities, gold[1:])


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
