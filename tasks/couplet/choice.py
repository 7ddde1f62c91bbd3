"""Candidates that differ: two beams, and a choice from both by maximal marginal relevance.

A beam's candidates differ in a character or two. So a second beam grows in the same steps and pays for what the best
rows of the first one write; of the texts of both those are taken, one by one, that score high and have little in
common with the ones taken before (Carbonell & Goldstein 1998, "The Use of MMR", equation 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.tasks.couplet.line_plan import LinePlan, rows_of_inputs
from paddle_dialog.tasks.couplet.rerank import Candidate

BEAM_ROWS = 5  # of the first beam, whose next characters the second one pays for
PENALTY = 1.5  # nats of a character that all of them write
LIKENESS = 0.5  # nats a token that having all characters in common with one taken before costs


@dataclass(frozen=True)
class BeamResult:
    """What the search found for one line."""

    candidates: list[Candidate]  # best first
    plan: LinePlan  # that they keep
    diverse: Sequence[Candidate] = ()  # of the second beam


def choose(result: BeamResult, wanted: int, distance: float) -> list[Candidate]:
    """Choose candidates of one line that differ.

    Args:
        result: its best candidate stays the first.
        wanted: how many.
        distance: least share of the free characters in which any two of them differ; ones that are too alike fill up
            where there are too few.
    """
    candidates = list({text: (text, h) for text, h in [*result.diverse, *result.candidates]}.values())
    if not result.candidates:
        return candidates[:wanted]
    weights = free_positions(result.plan)  # [T]
    free = int(weights.sum())
    most = free - math.ceil(
        distance * free - 1e-9
    )  # the rounding of a third times three is not a whole character
    texts = np.full((len(candidates), len(weights)), -1, dtype=np.int64)  # [K, T]
    for row, (_, hypothesis) in zip(texts, candidates, strict=True):
        row[: len(hypothesis.tokens)] = hypothesis.tokens[: len(row)]
    scores = np.array([h.rank_score / (len(h.tokens) + 1) for _, h in candidates])  # [K]
    common = np.zeros(len(candidates), dtype=np.int64)  # most characters in common with one taken
    taken: list[int] = []
    best = first = [text for text, _ in candidates].index(result.candidates[0][0])
    while True:
        taken.append(best)
        common = np.maximum(common, ((texts == texts[best]) & (texts >= 0)) @ weights)
        left = np.setdiff1d(np.arange(len(candidates)), taken)
        if len(taken) == wanted or not len(left):
            break
        pool = left[common[left] <= most] if (common[left] <= most).any() else left
        best = int(pool[np.argmax(scores[pool] - LIKENESS * common[pool] / max(free, 1))])
    others = sorted(taken[1:], key=lambda place: -candidates[place][1].rank_score)
    return [candidates[place] for place in (first, *others)]


def without_penalty(
    candidates: Sequence[Candidate], plan: LinePlan, divisor: Callable[[int], float]
) -> list[Candidate]:
    """Return candidates of the second beam with the rank they have without `DiverseBeamPenalty`."""
    return [
        (text, replace(h, rank_score=(h.log_prob - plan.penalty(h.tokens)) / divisor(len(h.tokens) + 1)))
        for text, h in candidates
    ]


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


class DiverseBeamPenalty:
    """Penalises for every second input of a batch what the best rows of the input before it are about to write.

    Args:
        plans: one for each two inputs, which are copies of one.
    """

    def __init__(self, plans: Sequence[LinePlan]) -> None:
        self._weights = [free_positions(plan) for plan in plans]

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        place, before, heads = prefixes.length, -1, np.zeros(0, dtype=np.int64)
        for number, rows in rows_of_inputs(prefixes):
            weights = self._weights[number // 2]
            if place >= len(weights) or not weights[place]:
                continue
            if number % 2 == 0:  # its best row is the first
                before, heads = number, scores[rows][:BEAM_ROWS].argmax(axis=1)
            elif before == number - 1:
                tokens, counts = np.unique(heads, return_counts=True)
                scores[rows, tokens] -= PENALTY * counts / len(heads)
