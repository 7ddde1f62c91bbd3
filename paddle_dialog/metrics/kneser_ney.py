"""An n-gram model to measure networks against: interpolated Kneser-Ney with three discounts.

Chen & Goodman 1998, "An Empirical Study of Smoothing Techniques for Language Modeling", section 4.1.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from paddle_dialog.text.vocabulary import Vocabulary


class KneserNey:
    """The n-grams of some texts.

    Args:
        texts: ids of each text, without begin and end.
        size: of the vocabulary V.
        order: n.
    """

    def __init__(self, texts: Sequence[Sequence[int]], size: int, order: int = 4) -> None:
        self._size, self._order = size, order
        grams = self._grams(texts)  # [N, n]
        self._levels = []
        keys, counts = np.unique(self._keys(grams), return_counts=True)
        for length in range(order, 0, -1):
            self._levels.append(_Level(keys, counts, size))
            if length > 1:
                shorter = keys % size ** (length - 1)  # each n-gram counts once, whatever stands before it
                begins = shorter // size ** (length - 2) == Vocabulary.bos_id
                weights = np.where(
                    begins & (length > 2), counts, 1
                )  # nothing but a begin stands before a begin
                keys, places = np.unique(shorter, return_inverse=True)
                counts = np.bincount(places, weights).astype(np.int64)

    def probabilities(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Return p of each id and each end given what stands before, [ids and ends]."""
        keys = self._keys(self._grams(texts))
        p = np.full(len(keys), 1.0 / self._size)
        for length, level in zip(range(1, self._order + 1), reversed(self._levels), strict=True):
            p = level.interpolate(keys % self._size**length, p)
        return p

    def _grams(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Return all n-grams that end within a text or with its end, [N, n]."""
        before = [Vocabulary.bos_id] * (self._order - 1)
        padded = [np.array([*before, *text, Vocabulary.eos_id], dtype=np.int64) for text in texts]
        return np.concatenate([np.lib.stride_tricks.sliding_window_view(t, self._order) for t in padded])

    def _keys(self, grams: np.ndarray) -> np.ndarray:
        """Return each n-gram [N, n] as one number [N]."""
        return grams @ (self._size ** np.arange(self._order - 1, -1, -1, dtype=np.int64))


class _Level:
    """N-grams of one length with their counts, and what their histories leave to shorter ones."""

    def __init__(self, keys: np.ndarray, counts: np.ndarray, size: int) -> None:
        of_counts = [max(1, int((counts == number).sum())) for number in range(1, 5)]
        y = of_counts[0] / (of_counts[0] + 2 * of_counts[1])
        steps = [n + 1 - (n + 2) * y * after / own for n, (own, after) in enumerate(pairwise(of_counts))]
        discounts = np.array([0.0, *(min(max(step, 0.0), n + 1.0) for n, step in enumerate(steps))])
        taken = discounts[np.minimum(counts, 3)]
        self._size, self._keys, self._left = size, keys, counts - taken
        self._histories, places = np.unique(keys // size, return_inverse=True)
        self._totals = np.bincount(places, counts)
        self._backoff = np.bincount(places, taken) / self._totals

    def interpolate(self, keys: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        """Return the probabilities of n-grams, given those without their first token."""
        place, known = _find(self._histories, keys // self._size)
        gram, seen = _find(self._keys, keys)
        own = np.where(seen, self._left[gram], 0.0) / self._totals[place]
        return np.where(known, own + self._backoff[place] * shorter, shorter)


def _find(table: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return places of keys in a sorted table, and whether they are there."""
    places = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return places, table[places] == keys
