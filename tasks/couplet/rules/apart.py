"""Keeps a text away from others: it has few characters in common with each at the same positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.decoding.processors import FORBIDDEN, Prefixes
from tasks.couplet.rules.line_plan import LinePlan
from tasks.couplet.rules.processors import rows_of_inputs


def free_positions(plan: LinePlan) -> np.ndarray:
    """Return how many positions the choice at each position decides, [T].

    A character that the given line's repetitions bring back counts for all its places, at the first of them; a forced
    one (punctuation, a locked character) for none.
    """
    weights = np.zeros(len(plan.origins), dtype=np.int64)
    for place in range(len(plan.origins)):
        if place not in plan.forced:
            weights[plan.origin(place)] += 1
    return weights


def common(one: Sequence[int], other: Sequence[int], weights: np.ndarray) -> int:
    """Return how many of the free positions hold the same token in both texts."""
    size = min(len(one), len(other), len(weights))
    same = np.asarray(one[:size]) == np.asarray(other[:size])
    return int(weights[:size][same].sum())


class Apart:
    """Bounds what a text has in common with others, and makes it dear, so that a beam leaves them early.

    Args:
        weights: for each input, its `free_positions`.
        others: for each input, the tokens of the texts to keep away from.
        most: for each input, how many free positions may hold what one of the others has there.
        penalty: nats a position that does.
    """

    def __init__(
        self,
        weights: Sequence[np.ndarray],
        others: Sequence[Sequence[Sequence[int]]],
        most: Sequence[int],
        penalty: float,
    ) -> None:
        self._weights, self._most, self._penalty = weights, most, penalty
        self._others = [_table(texts, len(sizes)) for texts, sizes in zip(others, weights, strict=True)]

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        place = prefixes.length
        for number, rows in rows_of_inputs(prefixes):
            weights, others = self._weights[number], self._others[number]  # [T], [K, T]
            if place >= len(weights) or not weights[place]:
                continue
            block, tokens = scores[rows], prefixes.tokens[rows]  # [R, V], [R, t]
            same = tokens[:, None] == others[None, :, :place]  # [R, K, t]
            full = (same * weights[:place]).sum(axis=2) + weights[place] > self._most[number]  # [R, K]
            for column, token in enumerate(others[:, place].tolist()):
                if token >= 0:
                    block[:, token] -= self._penalty
                    block[full[:, column], token] = FORBIDDEN

    def taken_off(self, number: int, tokens: Sequence[int]) -> float:
        """Return the nats that a text of an input was charged."""
        weights, others = self._weights[number], self._others[number]
        size = min(len(tokens), len(weights))
        same = np.asarray(tokens[:size]) == others[:, :size]  # [K, t]
        return self._penalty * int((same & (weights[:size] > 0)).sum())


def _table(texts: Sequence[Sequence[int]], width: int) -> np.ndarray:
    """Return the tokens of K texts, -1 after their ends, [K, width]."""
    table = np.full((len(texts), width), -1, dtype=np.int64)
    for row, tokens in zip(table, texts, strict=True):
        row[: len(tokens)] = tokens[:width]
    return table
