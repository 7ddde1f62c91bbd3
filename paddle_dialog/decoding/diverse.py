"""Diverse beam search: groups of beams that keep away from each other's words.

Vijayakumar et al. 2018, "Diverse Beam Search for Improved Description of Scenes", algorithm 1 with the Hamming
distance: at each step the groups of an input choose one after the other, and a token costs `diversity_penalty` for
each time an earlier group has just chosen it at this position. The penalty decides what is chosen and leaves the
scores of the texts alone, as in the paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.penalties import length_divisor
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.decoding.scores import ScoreTable, best_candidates, capped
from paddle_dialog.decoding.slots import Continuation, Slots, best_first, by_input
from paddle_dialog.decoding.stepping import Stepper, StepScores


@dataclass(frozen=True)
class _Growing:
    """The prefixes that grow: ordered by group, within a group by input, within an input best first."""

    groups: np.ndarray  # [N]
    owners: np.ndarray  # [N] input of each prefix
    tokens: np.ndarray  # [N, t]
    totals: np.ndarray  # [N] processed log-probabilities
    log_probs: np.ndarray  # [N] the model's own


class DiverseBeamSearch:
    """Diverse beam search over all inputs of a batch at once.

    Each group is a beam search of its own with `beam_size / groups` slots, see `BeamSearch`; the answer is the best
    of what all groups found, every text once. An input leaves when none of its groups can change the answer.
    """

    def __init__(self, model: StepModel, options: SearchOptions) -> None:
        self._model = model
        self._options = options
        self._width = options.beam_size // options.groups
        self._divisor = length_divisor(options.length_penalty, options.alpha)
        self._remember = options.length_penalty != "none"

    def run(self, source: np.ndarray, lengths: np.ndarray) -> list[list[Hypothesis]]:
        """Search.

        Args:
            source: ids, [B, S] int64.
            lengths: [B] int64.

        Returns:
            For each input at most `n_best` different hypotheses, highest `rank_score` first.
        """
        count = len(source)
        limits = np.asarray(self._options.limits(count))  # [B]
        beams = [[Slots(self._width) for _ in range(self._options.groups)] for _ in range(count)]
        stepper = Stepper(self._model, source, lengths, self._options)
        growing = self._start(count)
        stepper.follow(growing.owners, growing.owners)
        while len(growing.owners):
            prefixes = Prefixes(growing.tokens, growing.owners, limits[growing.owners])
            chosen = self._choose(beams, growing, prefixes, stepper.step(prefixes))
            growing, rows = self._grow(beams, growing, chosen, limits)
            if len(rows):
                stepper.follow(rows, growing.owners)
        return [sorted(self._answer(groups)[: self._options.n_best], key=best_first) for groups in beams]

    def _start(self, count: int) -> _Growing:
        groups = self._options.groups
        zeros = np.zeros(count * groups)
        owners = np.tile(np.arange(count), groups)
        empty = np.zeros((count * groups, 0), dtype=np.int64)
        return _Growing(np.repeat(np.arange(groups), count), owners, empty, zeros, zeros)

    def _choose(
        self, beams: list[list[Slots]], growing: _Growing, prefixes: Prefixes, scores: StepScores
    ) -> list[list[Continuation]]:
        """Take one step with every group in turn.

        Returns:
            The continuations that grow on, for each group.
        """
        divisor = self._divisor(prefixes.length + 1)
        taken: list[Counter[int]] = [Counter() for _ in beams]  # tokens the earlier groups chose at this step
        chosen: list[list[Continuation]] = []
        bounds = np.searchsorted(growing.groups, np.arange(self._options.groups + 1)).tolist()
        for number, (start, stop) in enumerate(pairwise(bounds)):
            kept: list[Continuation] = []
            for offers in self._offers(growing, scores.table, start, stop, taken):
                owner = offers[0].owner
                grown, ended = beams[owner][number].fill(
                    offers, prefixes, scores.ends, divisor, self._options.eos_id
                )
                taken[owner].update(offer.token for offer in [*grown, *ended])
                kept += grown
            chosen.append(kept)
        return chosen

    def _offers(
        self, growing: _Growing, table: ScoreTable, start: int, stop: int, taken: Sequence[Counter[int]]
    ) -> Iterator[list[Continuation]]:
        """Iterate over the best continuations of the rows of one group, a list for each input."""
        if start == stop:
            return
        owners = growing.owners[start:stop]
        part = copy(table)
        part.padded, part.values = table.padded[start:stop], table.values[start:stop]
        places = [(row, token) for row, owner in enumerate(owners.tolist()) for token in taken[owner]]
        at = tuple(np.array(places, dtype=np.int64).reshape(-1, 2).T)
        counts = np.array([taken[owners[row]][token] for row, token in places])
        untouched = part.values[at]
        part.values[at] = untouched - self._options.diversity_penalty * counts
        best = best_candidates(part, growing.totals[start:stop], owners, self._width)
        part.values[at] = untouched
        rows = best.rows + start  # [M]
        totals = growing.totals[rows] + capped(table.values[rows, best.tokens])
        log_probs = growing.log_probs[rows] + table.log_probs(rows, best.tokens)
        yield from by_input(best, rows, totals, log_probs)

    def _grow(
        self,
        beams: list[list[Slots]],
        growing: _Growing,
        chosen: list[list[Continuation]],
        limits: np.ndarray,
    ) -> tuple[_Growing, np.ndarray]:
        """Return the prefixes of the next step and the rows they continue, without the inputs that are decided."""
        reachable: dict[int, float] = {}
        for offer in (offer for offers in chosen for offer in offers):
            bound = offer.total / self._divisor(int(limits[offer.owner]) + 1)
            reachable[offer.owner] = max(bound, reachable.get(offer.owner, bound))
        decided = {owner for owner, bound in reachable.items() if self._is_decided(beams[owner], bound)}
        kept = [
            (number, offer)
            for number, offers in enumerate(chosen)
            for offer in offers
            if offer.owner not in decided
        ]
        rows = np.array([offer.row for _, offer in kept], dtype=np.int64)  # [N']
        last = np.array([offer.token for _, offer in kept], dtype=np.int64)  # [N']
        following = _Growing(
            np.array([number for number, _ in kept], dtype=np.int64),
            np.array([offer.owner for _, offer in kept], dtype=np.int64),
            np.concatenate([growing.tokens[rows], last[:, None]], axis=1),  # [N', t + 1]
            np.array([offer.total for _, offer in kept]),
            np.array([offer.log_prob for _, offer in kept]),
        )
        return following, rows

    def _is_decided(self, groups: list[Slots], reachable: float) -> bool:
        """Return whether no continuation can still enter the answer; `reachable` bounds their scores from above."""
        if not self._options.early_stopping:
            return False
        settled = self._answer(groups) if self._remember else _distinct([g.in_beam for g in groups])
        count = self._options.n_best
        return len(settled) >= count and settled[count - 1].rank_score >= reachable

    def _answer(self, groups: list[Slots]) -> list[Hypothesis]:
        """Return the finished hypotheses so far, every text once, best first."""
        everything = _distinct([group.found for group in groups])
        if self._remember:
            return everything
        # As in `BeamSearch`: a hypothesis without a slot counts only where there are too few others.
        kept = _distinct([group.in_beam for group in groups])
        texts = {tuple(hypothesis.tokens) for hypothesis in kept}
        return kept + [hypothesis for hypothesis in everything if tuple(hypothesis.tokens) not in texts]


def _distinct(lists: Sequence[Sequence[Hypothesis]]) -> list[Hypothesis]:
    """Return the hypotheses of all lists, every text once, best first; equal scores in the order of the lists."""
    texts: dict[tuple[int, ...], Hypothesis] = {}
    for hypothesis in sorted((hypothesis for found in lists for hypothesis in found), key=best_first):
        texts.setdefault(tuple(hypothesis.tokens), hypothesis)
    return list(texts.values())
