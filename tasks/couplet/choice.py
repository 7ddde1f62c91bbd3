"""Candidates to choose from: the best one, and others that differ from it and from each other.

A beam's candidates differ in a character or two. Here the best one stays, and a second, wide search looks for texts
that keep their distance from it; of both searches' texts those are taken, one by one, that score high and have little
in common with the ones taken before (maximal marginal relevance, Carbonell & Goldstein 1998, "The Use of MMR",
equation 1). Where too few are far enough from each other, the search goes on away from all that were taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from paddle_dialog.decoding.interface import Hypothesis
from tasks.couplet.rules.apart import Apart, common, free_positions
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.search import Candidate, Found, Search, processors_of, texts_of

PENALTY = 1.0  # nats a character that a search away from others has in common with one of them
LIKENESS = 0.5  # nats a token that having all characters in common with one taken before costs

Divisor = Callable[[int], float]  # of a length penalty, see `length_divisor`


class _Choice:
    """The candidates of one line that are taken, and those that could be."""

    def __init__(self, found: Found, wanted: int, distance: float, divisor: Divisor) -> None:
        self.found, self.wanted = found, wanted
        self.weights = free_positions(found.plan)
        self.free = int(self.weights.sum())
        # The rounding of a third times three is not a whole character.
        self.most = self.free - math.ceil(distance * self.free - 1e-9)
        self.divisor = divisor
        self.taken: list[Candidate] = found.candidates[:1]
        self._pool: list[Candidate] = []
        self._alike: list[int] = []  # the most characters that each of the pool has in common with one taken
        self._offer(found.candidates[1:])
        self.ended = self.most == self.free

    @property
    def pending(self) -> bool:
        """Whether another search may bring what is missing."""
        return not self.ended and len(self.taken) < self.wanted

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Take what fits of further candidates and those that are left of earlier ones."""
        known = {text for text, _ in [*self.taken, *self._pool]}
        self._offer([candidate for candidate in candidates if candidate[0] not in known])
        before = len(self.taken)
        self._take(self.most)
        self.ended = len(self.taken) == before

    def fill(self) -> list[Candidate]:
        """Return the answer: the best one, the others by their scores, too like ones where no more were found."""
        self._take(self.free)
        return [self.taken[0], *sorted(self.taken[1:], key=lambda candidate: -candidate[1].rank_score)]

    def _offer(self, candidates: Sequence[Candidate]) -> None:
        self._pool += candidates
        self._alike += [max(self._common(one, other) for other in self.taken) for one in candidates]

    def _take(self, most: int) -> None:
        while len(self.taken) < self.wanted:
            fitting = [place for place, number in enumerate(self._alike) if number <= most]
            if not fitting:
                return
            worth = [self._worth(self._pool[place][1], self._alike[place]) for place in fitting]
            best = fitting[worth.index(max(worth))]
            del self._alike[best]
            taken = self._pool.pop(best)
            self.taken.append(taken)
            both = zip(self._alike, self._pool, strict=True)
            self._alike = [max(number, self._common(one, taken)) for number, one in both]

    def _worth(self, hypothesis: Hypothesis, alike: int) -> float:
        length = len(hypothesis.tokens) + 1
        per_token = hypothesis.rank_score * self.divisor(length) / length
        return per_token - LIKENESS * alike / max(self.free, 1)

    def _common(self, one: Candidate, other: Candidate) -> int:
        return common(one[1].tokens, other[1].tokens, self.weights)


def choose(
    found: Sequence[Found],
    wanted: int,
    distance: float,
    banned: Sequence[str],
    table: CharacterTable,
    search: Search,
    divisor: Divisor,
) -> list[list[Candidate]]:
    """Choose candidates that differ.

    Args:
        found: of each line, by the usual search.
        wanted: candidates for each line.
        distance: least share of the free characters in which any two of them differ.
        banned: the banned words of the rules.
        table: the characters of the model's vocabulary.
        search: the engine, with a wide beam; it searches again for some lines of the batch, given by number.
        divisor: of its length penalty.

    Returns:
        For each line its best candidate and others, by their scores; as many as wanted where there are as many.
    """
    choices = [_Choice(each, wanted, distance, divisor) for each in found]
    while pending := [number for number, choice in enumerate(choices) if choice.pending]:
        # Lines under the same rules are searched together; nearly always that is all of them.
        active = found[pending[0]].active
        batch = [number for number in pending if found[number].active == active]
        chosen = [choices[number] for number in batch]
        apart = Apart(
            [choice.weights for choice in chosen],
            [[hypothesis.tokens for _, hypothesis in choice.taken] for choice in chosen],
            [choice.most for choice in chosen],
            PENALTY,
        )
        processors = processors_of([choice.found.plan for choice in chosen], active, banned, table)
        for place, hypotheses in enumerate(search(batch, [*processors, apart])):
            own = [_uncharged(h, apart.taken_off(place, h.tokens), divisor) for h in hypotheses]
            chosen[place].add(texts_of(own, chosen[place].found.plan, table))
    return [choice.fill() for choice in choices]


def _uncharged(hypothesis: Hypothesis, charge: float, divisor: Divisor) -> Hypothesis:
    """Return a hypothesis with the rank it has where nothing is to be kept away from."""
    back = charge / divisor(len(hypothesis.tokens) + 1)
    return replace(hypothesis, rank_score=hypothesis.rank_score + back)
