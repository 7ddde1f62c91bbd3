"""Metrics of classes and of text, by hand and against other libraries."""

import math
import warnings

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix as by_sklearn
from sklearn.metrics import f1_score as f1_by_sklearn

from paddle_dialog.metrics import (
    calibration_error,
    confusion_matrix,
    corpus_bleu,
    distinct_n,
    f1_score,
    perplexity_per_example,
    token_perplexity,
)


def test_confusion_and_f1_are_those_of_scikit_learn():
    generator = np.random.default_rng(5)
    gold, predicted = generator.integers(0, 2, 200), generator.integers(0, 2, 200)
    confusion = confusion_matrix(predicted, gold, 2)
    np.testing.assert_array_equal(confusion, by_sklearn(gold, predicted))
    assert f1_score(confusion) == pytest.approx(f1_by_sklearn(gold, predicted))
    assert f1_score(confusion_matrix(np.zeros(3, int), np.zeros(3, int), 2)) == 0.0


def test_calibration_error_is_the_weighted_gap_of_each_bin():
    probabilities = np.array([[0.1, 0.9], [0.91, 0.09], [0.4, 0.6]])
    # The first two share a bin (0.8667 to 0.9333): one of them is right. The third is right at 0.6.
    expected = (abs(1 - 0.9 - 0.91) + abs(1 - 0.6)) / 3
    assert calibration_error(probabilities, np.array([1, 1, 1])) == pytest.approx(expected)
    # One at the edge belongs to the bin below: 1.0 and 0.95 are of the last bin, and one of the two is right.
    found = calibration_error(np.array([[0.0, 1.0], [0.05, 0.95]]), np.array([0, 1]))
    assert found == pytest.approx(0.95 / 2)


def test_token_perplexity_by_hand():
    # probabilities 1/2, 1/4, 1/8: the geometric mean is 1/4
    assert token_perplexity(math.log(2) + math.log(4) + math.log(8), 3) == pytest.approx(4)
    assert token_perplexity(0.0, 7) == 1.0
    assert token_perplexity(1e6, 1) == math.inf


def test_perplexity_per_example_by_hand():
    # one token at 1/2, three at 1/8: the mean of log 2 and log 8 is log 4; over tokens it is log 2**2.5
    nll, tokens = [math.log(2), 3 * math.log(8)], [1, 3]
    assert perplexity_per_example(nll, tokens) == pytest.approx(4)
    assert token_perplexity(sum(nll), sum(tokens)) == pytest.approx(2**2.5)


def test_distinct_by_hand():
    replies = [["i", "am", "sorry"], ["i", "am", "glad"], ["oh"]]
    assert distinct_n(replies, 1) == pytest.approx(5 / 7)  # i am sorry glad oh
    assert distinct_n(replies, 2) == pytest.approx(3 / 4)  # "i am" twice, "am sorry", "am glad"
    assert distinct_n(replies, 3) == 1.0
    assert distinct_n(replies, 4) == 0.0
    assert distinct_n([], 1) == 0.0
    assert distinct_n(["ab", "ab"], 2) == pytest.approx(1 / 2)  # no n-gram crosses texts


def test_bleu_by_hand():
    # hypothesis a b c d e, reference a b c d x y: clipped precisions 4/5, 3/4, 2/3, 1/2; brevity exp(1 - 6/5)
    expected = 100 * math.exp(1 - 6 / 5) * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert corpus_bleu([list("abcde")], [list("abcdxy")]) == pytest.approx(expected)
    # It is no mean of sentences: counts add up before the ratio.
    # 1-grams 5/6, 2-grams 3/4, 3-grams 2/2, 4-grams 1/1; equal lengths
    expected = 100 * (5 / 6 * 3 / 4) ** (1 / 4)
    assert corpus_bleu([list("abcd"), list("ex")], [list("abcd"), list("ef")]) == pytest.approx(expected)


def test_bleu_takes_tokens_as_they_are():
    assert corpus_bleu([["don't", "go", "!!", "now"]], [["don't", "go", "!!", "now"]]) == pytest.approx(100)
    # tokenised again, "!!" would become two tokens and share one with "!"
    apart = corpus_bleu([["a", "b", "c", "d", "!!"]], [["a", "b", "c", "d", "!"]])
    assert apart == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4))


def test_bleu_bears_empty_hypotheses():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert corpus_bleu([""], ["春雨山雪"]) == 0.0
