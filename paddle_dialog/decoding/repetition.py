"""Logits processors about what a text repeats: n-grams, tokens, and a prescribed pattern of equal positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.decoding.processors import FORBIDDEN, Prefixes


class NoRepeatNGram:
    """Forbid the token that would complete an n-gram the text already holds."""

    def __init__(self, size: int) -> None:
        """Set the size.

        Args:
            size: n, >= 1; with 1 no token is written twice.

        Raises:
            ValueError: n is below 1.
        """
        if size < 1:
            raise ValueError(f"the size of an n-gram is {size}, it must be 1 or more")
        self._size = size

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        grams = prefixes.length - self._size + 1  # complete n-grams so far
        if grams < 1:
            return
        context = self._size - 1
        windows = np.lib.stride_tricks.sliding_window_view(
            prefixes.tokens, self._size, axis=1
        )  # [N, grams, n]
        tail = prefixes.tokens[:, prefixes.length - context :]  # [N, n - 1]
        row, place = np.nonzero((windows[:, :, :context] == tail[:, None, :]).all(axis=2))
        scores[row, windows[row, place, context]] = FORBIDDEN


class RepetitionPenalty:
    """Multiply the log-probability of tokens already written (after Keskar et al. 2019, "CTRL", section 4.1).

    The paper treats positive and negative logits differently; log-probabilities are never positive, so one product
    is enough.
    """

    def __init__(self, penalty: float) -> None:
        """Set the strength.

        Args:
            penalty: >= 1; 1 changes nothing.

        Raises:
            ValueError: the penalty is below 1.
        """
        if not penalty >= 1:
            raise ValueError(f"the repetition penalty is {penalty}, it must be 1 or more")
        self._penalty = penalty

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        if prefixes.length:
            rows = np.arange(len(scores))[:, None]  # [N, 1]
            # Read and write once, so that a token written twice is not penalised twice.
            scores[rows, prefixes.tokens] = scores[rows, prefixes.tokens] * self._penalty


class RepetitionPattern:
    """Make a text repeat its tokens at the same positions as a given pattern, and nowhere else.

    The pattern of a line holds for each position the first one with the same token: 树树还树 is 0, 0, 2, 0. The
    search does not look ahead to tokens locked at later positions; lock a token at all positions of its class.
    """

    def __init__(self, patterns: Sequence[Sequence[int]], penalty: float = np.inf) -> None:
        """Set the patterns.

        Args:
            patterns: one for each input; positions beyond its end are free.
            penalty: subtracted from tokens that break the pattern; a finite one lets a text break it where other
                rules leave no choice.

        Raises:
            ValueError: an entry points to a later position, or to one that is itself a repetition.
        """
        for pattern in patterns:
            if any(first > place or pattern[first] != first for place, first in enumerate(pattern)):
                raise ValueError(f"{list(pattern)} is no pattern of first positions")
        self._patterns = patterns
        self._penalty = penalty

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        place = prefixes.length
        for row, number in enumerate(prefixes.inputs.tolist()):
            pattern = self._patterns[number]
            if place >= len(pattern):
                continue
            if pattern[place] == place:
                scores[row, np.unique(prefixes.tokens[row])] -= self._penalty
            else:
                repeated = prefixes.tokens[row, pattern[place]]
                kept = scores[row, repeated]
                scores[row] -= self._penalty
                scores[row, repeated] = kept


def repetition_pattern(tokens: Sequence[object]) -> list[int]:
    """Return for each position the first one that holds the same token.

    Args:
        tokens: ids or characters.

    Returns:
        As `RepetitionPattern` wants it.
    """
    first: dict[object, int] = {}
    return [first.setdefault(token, place) for place, token in enumerate(tokens)]
