"""Variety of generated text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def distinct_n(sequences: Iterable[Sequence[str]], n: int) -> float:
    """Return distinct n-grams / all n-grams of the whole set (Li et al. 2016, section 5.2).

    Args:
        sequences: token lists; a string is a list of characters. No n-gram crosses from one to the next.
        n: length of the n-grams, at least 1.

    Returns:
        The share in 0–1; 0 if no sequence is long enough for an n-gram.

    Raises:
        ValueError: `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"n is {n}, but an n-gram has at least one token")
    seen: set[tuple[str, ...]] = set()
    total = 0
    for sequence in sequences:
        ngrams = [tuple(sequence[start : start + n]) for start in range(len(sequence) - n + 1)]
        seen.update(ngrams)
        total += len(ngrams)
    return len(seen) / total if total else 0.0
