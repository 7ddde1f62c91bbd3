import math
import warnings

import pytest

from paddle_dialog.metrics.text import corpus_bleu, distinct_n


def test_distinct_by_hand():
    replies = [["i", "am", "sorry"], ["i", "am", "glad"], ["oh"]]
    assert distinct_n(replies, 1) == pytest.approx(5 / 7)  # i am sorry glad oh
    assert distinct_n(replies, 2) == pytest.approx(3 / 4)  # "i am" twice, "am sorry", "am glad"
    assert distinct_n(replies, 3) == 1.0
    assert distinct_n(replies, 4) == 0.0
    assert distinct_n([], 1) == 0.0


def test_ngrams_do_not_cross_sequences():
    assert distinct_n(["ab", "ab"], 2) == pytest.approx(1 / 2)


def test_distinct_refuses_empty_ngrams():
    with pytest.raises(ValueError, match="n is 0"):
        distinct_n(["ab"], 0)


def test_bleu_by_hand():
    # hypothesis a b c d e, reference a b c d x y: clipped precisions 4/5, 3/4, 2/3, 1/2; brevity exp(1 - 6/5)
    expected = 100 * math.exp(1 - 6 / 5) * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert corpus_bleu([list("abcde")], [list("abcdxy")]) == pytest.approx(expected)


def test_bleu_is_of_the_corpus_not_a_mean_of_sentences():
    # counts add up before the ratio: 1-grams 5/6, 2-grams 3/4, 3-grams 2/2, 4-grams 1/1; equal lengths
    expected = 100 * (5 / 6 * 3 / 4) ** (1 / 4)
    assert corpus_bleu([list("abcd"), list("ex")], [list("abcd"), list("ef")]) == pytest.approx(expected)


def test_bleu_takes_tokens_as_they_are():
    assert corpus_bleu([["don't", "go", "!!", "now"]], [["don't", "go", "!!", "now"]]) == pytest.approx(100)
    # tokenised again, "!!" would become two tokens and share one with "!"
    apart = corpus_bleu([["a", "b", "c", "d", "!!"]], [["a", "b", "c", "d", "!"]])
    assert apart == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4))


def test_bleu_bears_empty_hypotheses_but_no_empty_corpus():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert corpus_bleu([""], ["春雨山雪"]) == 0.0
    with pytest.raises(ValueError, match="as many references"):
        corpus_bleu([], [])
    with pytest.raises(ValueError, match="as many references"):
        corpus_bleu(["春"], [])
