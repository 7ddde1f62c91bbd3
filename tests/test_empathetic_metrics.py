"""Metrics on replies and emotions, against values counted by hand."""

import pytest

from tasks.empathetic.metrics import (
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
