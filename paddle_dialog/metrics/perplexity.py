"""Perplexity: of a corpus and by example."""

from __future__ import annotations

import math
from collections.abc import Sequence


def token_perplexity(total_nll: float, tokens: int) -> float:
    """Return exp(total / tokens), the perplexity of a corpus.

    Args:
        total_nll: sum of -log p over all real tokens, in nats.
        tokens: how many real tokens, end tokens included if their nll is.

    Raises:
        ValueError: there is no token.
    """
    if tokens <= 0:
        raise ValueError(f"perplexity needs at least one token, not {tokens}")
    return _exp(total_nll / tokens)


def perplexity_per_example(nll: Sequence[float], tokens: Sequence[int]) -> float:
    """Return exp of the mean over examples of each one's mean nll a token.

    Short and long examples weigh the same, unlike in `token_perplexity`. The papers on
    EmpatheticDialogues report this figure.

    Args:
        nll: sum of -log p over the tokens of each example, in nats.
        tokens: number of real tokens of each example.

    Raises:
        ValueError: there is no example, one has no token, or the lengths differ.
    """
    if not nll or any(count <= 0 for count in tokens):
        raise ValueError("perplexity needs at least one example and at least one token in each")
    means = [total / count for total, count in zip(nll, tokens, strict=True)]
    return _exp(math.fsum(means) / len(means))


def _exp(mean: float) -> float:
    try:
        return math.exp(mean)
    except OverflowError:
        return math.inf
