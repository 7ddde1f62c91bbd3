import math

import pytest

from paddle_dialog.metrics.text import perplexity_per_example, token_perplexity


def test_token_perplexity_by_hand():
    # probabilities 1/2, 1/4, 1/8: the geometric mean is 1/4
    assert token_perplexity(math.log(2) + math.log(4) + math.log(8), 3) == pytest.approx(4)
    assert token_perplexity(0.0, 7) == 1.0
    assert token_perplexity(1e6, 1) == math.inf
    with pytest.raises(ValueError, match="not 0"):
        token_perplexity(1.0, 0)


def test_perplexity_per_example_by_hand():
    # one token at 1/2, three at 1/8: the mean of log 2 and log 8 is log 4; over tokens it is log 2**2.5
    nll, tokens = [math.log(2), 3 * math.log(8)], [1, 3]
    assert perplexity_per_example(nll, tokens) == pytest.approx(4)
    assert token_perplexity(sum(nll), sum(tokens)) == pytest.approx(2**2.5)


@pytest.mark.parametrize(("nll", "tokens"), [([], []), ([1.0], [0]), ([1.0, 2.0], [1])])
def test_perplexity_per_example_refuses_what_has_no_mean(nll, tokens):
    with pytest.raises(ValueError, match=r"perplexity needs|zip\(\)"):
        perplexity_per_example(nll, tokens)
