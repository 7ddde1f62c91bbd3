"""The n-gram model beside the poem networks: probabilities that add up, by hand, and worth of longer histories."""

import numpy as np
import pytest

from paddle_dialog.metrics.kneser_ney import KneserNey
from paddle_dialog.text.vocabulary import Vocabulary

A, B, C, END = 4, 5, 6, Vocabulary.eos_id


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_after_any_history_add_up_to_one(order):
    rng = np.random.default_rng(0)
    texts = [rng.integers(4, 9, rng.integers(1, 8)).tolist() for _ in range(50)]
    model = KneserNey(texts, 9, order)
    for history in ([], [4], [4, 8], [8, 8, 8], [4, 5, 6, 7]):
        next_one = [
            model.probabilities([[*history, token]])[len(history)] for token in range(9) if token != END
        ]
        end = model.probabilities([history])[-1]
        assert sum(next_one) + end == pytest.approx(1.0)


def test_a_bigram_by_hand():
    # Bigrams: <bos> A, A B, B <eos>, <bos> A, A C, C <eos>: counts 2, 1, 1, 1, 1; one of two, none of three or more.
    model = KneserNey([[A, B], [A, C]], 7, 2)
    one = 4 / (4 + 2 * 1)  # Y of the bigrams: four with count 1, one with count 2
    first, second = 1 - 2 * one * 1 / 4, 2 - 3 * one * 1 / 1
    second = min(max(second, 0.0), 2.0)
    # Unigrams by what stands before them: A 1, B 1, C 1, <eos> 2, again one kind of two for three of one.
    y = 3 / (3 + 2 * 1)
    one_left, two_left = 1 - (1 - 2 * y / 3), 2 - min(max(2 - 3 * y * 1 / 1, 0.0), 2.0)
    backoff = (5 - 3 * one_left - two_left) / 5
    unigram = {B: one_left / 5 + backoff / 7, END: two_left / 5 + backoff / 7}
    p = model.probabilities([[A, B]])
    assert p[1] == pytest.approx((1 - first) / 2 + (2 * first) / 2 * unigram[B])
    assert p[2] == pytest.approx((1 - first) / 1 + first * unigram[END])


def test_a_longer_history_foresees_more():
    texts = [[A, B, C, A, C, B] * 3] * 4
    perplexities = [
        np.exp(-np.log(KneserNey(texts, 7, order).probabilities(texts)).mean()) for order in (1, 2, 3)
    ]
    assert perplexities[0] > perplexities[1] > perplexities[2]
