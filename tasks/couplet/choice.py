"""Candidates to choose from: the best one, and others that differ from it and from each other.

A beam's candidates differ in a character or two. So a second beam grows beside it in the same steps and pays for what
the first one's best rows write; of the texts of both those are taken, one by one, that score high and have little in
common with the ones taken before (maximal marginal relevance, Carbonell & Goldstein 1998, "The Use of MMR",
equation 1). Where too few are far enough from each other, the search goes on away from all that were taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import FORBIDDEN, LogitsProcessor, Prefixes
from paddle_dialog.tasks.couplet.line_plan import LinePlan, rows_of_inputs
from paddle_dialog.tasks.couplet.rerank import Candidate

HEADS = 5  # rows of the first beam, whose next characters the second one pays for
BESIDE = 1.5  # nats of a character that all of them write
PENALTY = 1.0  # nats a character that a search away from others has in common with one of them
LIKENESS = 0.5  # nats a token that having all characters in common with one taken before costs

Divisor = Callable[[int], float]  # of a length penalty, see `length_divisor`
# Searches again for some lines of the batch, given by number, with a beam that a processor keeps apart.
FurtherSearch = Callable[[Sequence[int], LogitsProcessor], Sequence[Sequence[Candidate]]]


@dataclass(frozen=True)
class Found:
    """What the search found for one line."""

    candidates: list[Candidate]  # best first
    plan: LinePlan  # that they keep
    beside: Sequence[Candidate] = ()  # what the second beam found, see `BesideTheFirst`


def choose(
    found: Sequence[Found], wanted: int, distance: float, search: FurtherSearch, divisor: Divisor
) -> list[list[Candidate]]:
    """Choose candidates that differ.

    Args:
        found: of each line.
        wanted: candidates for each line.
        distance: least share of the free characters in which any two of them differ.
        search: for lines that have too few.
        divisor: of its length penalty.

    Returns:
        For each line its best candidate and others, by their scores; as many as wanted where there are as many.
    """
    choices = [_Choice(each, wanted, distance, divisor) for each in found]
    while pending := [number for number, choice in enumerate(choices) if choice.pending]:
        chosen = [choices[number] for number in pending]
        apart = Apart(
            [choice.weights for choice in chosen],
            [[hypothesis.tokens for _, hypothesis in choice.taken] for choice in chosen],
            [choice.most for choice in chosen],
            PENALTY,
        )
        for choice, candidates in zip(chosen, search(pending, apart), strict=True):
            choice.add(candidates)
    return [choice.fill() for choice in choices]


class _Choice:
    """The candidates of one line that are taken, and those that could be."""

    def __init__(self, found: Found, wanted: int, distance: float, divisor: Divisor) -> None:
        self.wanted = wanted
        self._plan = found.plan
        self.weights = free_positions(found.plan)
        self.free = int(self.weights.sum())
        # The rounding of a third times three is not a whole character.
        self.most = self.free - math.ceil(distance * self.free - 1e-9)
        self._divisor = divisor
        self.taken: list[Candidate] = found.candidates[:1]
        self._pool: list[Candidate] = []
        # The most characters that each of the pool has in common with one taken.
        self._alike = np.zeros(0, dtype=np.int64)
        self._offer(found.candidates[1:])
        self.ended = self.most == self.free or not self.taken
        if not self.ended:
            self._offer(self._uncharged(found.beside))
            self._take(self.most)

    @property
    def pending(self) -> bool:
        """Whether another search may bring what is missing."""
        return not self.ended and len(self.taken) < self.wanted

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Take what fits of further candidates and those that are left of earlier ones."""
        self._offer(self._uncharged(candidates))
        before = len(self.taken)
        self._take(self.most)
        self.ended = len(self.taken) == before

    def fill(self) -> list[Candidate]:
        """Return the answer: the best one, the others by their scores, too like ones where no more were found."""
        self._take(self.free)
        return [*self.taken[:1], *sorted(self.taken[1:], key=lambda candidate: -candidate[1].rank_score)]

    def _uncharged(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates with the rank they have where nothing is to be kept away from."""
        return [
            (text, replace(h, rank_score=self._total(h) / self._divisor(len(h.tokens) + 1)))
            for text, h in candidates
        ]

    def _total(self, hypothesis: Hypothesis) -> float:
        return hypothesis.log_prob - self._plan.penalty(hypothesis.tokens)

    def _offer(self, candidates: Sequence[Candidate]) -> None:
        known = {text for text, _ in [*self.taken, *self._pool]}
        new = [candidate for candidate in candidates if candidate[0] not in known]
        alike = [self._common(new, other) for other in self.taken]  # [K] each
        self._pool += new
        if new:
            self._alike = np.concatenate([self._alike, np.maximum.reduce(alike)])

    def _take(self, most: int) -> None:
        while len(self.taken) < self.wanted:
            fitting = np.flatnonzero(self._alike <= most).tolist()
            if not fitting:
                return
            worth = [self._worth(self._pool[place][1], int(self._alike[place])) for place in fitting]
            best = fitting[worth.index(max(worth))]
            self.taken.append(self._pool.pop(best))
            alike = np.delete(self._alike, best)
            self._alike = np.maximum(alike, self._common(self._pool, self.taken[-1]))

    def _worth(self, hypothesis: Hypothesis, alike: int) -> float:
        length = len(hypothesis.tokens) + 1
        per_token = hypothesis.rank_score * self._divisor(length) / length
        return per_token - LIKENESS * alike / max(self.free, 1)

    def _common(self, several: Sequence[Candidate], other: Candidate) -> np.ndarray:
        return common([hypothesis.tokens for _, hypothesis in several], other[1].tokens, self.weights)


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


def common(several: Sequence[Sequence[int]], other: Sequence[int], weights: np.ndarray) -> np.ndarray:
    """Return how many of the free positions hold the same token in each of K texts and in another one, [K]."""
    table = _table(several, len(weights))  # [K, T]
    same: np.ndarray = (table == _table([other], len(weights))) & (table >= 0)
    return same @ weights


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


class BesideTheFirst:
    """Makes dear for every second input of a batch what the best rows of the input before it are about to write.

    Args:
        weights: for each two inputs, which are copies of one, its `free_positions`.
    """

    def __init__(self, weights: Sequence[np.ndarray]) -> None:
        self._weights = weights

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        place, before, heads = prefixes.length, -1, np.zeros(0, dtype=np.int64)
        for number, rows in rows_of_inputs(prefixes):
            weights = self._weights[number // 2]
            if place >= len(weights) or not weights[place]:
                continue
            if number % 2 == 0:  # its best row is the first
                before, heads = number, scores[rows][:HEADS].argmax(axis=1)
            elif before == number - 1:
                tokens, counts = np.unique(heads, return_counts=True)
                scores[rows, tokens] -= BESIDE * counts / len(heads)


def _table(texts: Sequence[Sequence[int]], width: int) -> np.ndarray:
    """Return the tokens of K texts, -1 after their ends, [K, width]."""
    table = np.full((len(texts), width), -1, dtype=np.int64)
    for row, tokens in zip(table, texts, strict=True):
        row[: len(tokens)] = tokens[:width]
    return table
