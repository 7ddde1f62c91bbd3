"""The slots of a beam, which finished hypotheses and the prefixes that grow compete for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.decoding.scores import Candidates, group_starts


class Continuation(NamedTuple):
    """A prefix with one more token.

    Args:
        owner: the input.
        row: of the prefix.
        token: that follows it.
        choice: what it is chosen by: the total, less what a search charges for a token.
        total: processed log-probability of the prefix with this token.
        log_prob: the model's own.
    """

    owner: int
    row: int
    token: int
    choice: float
    total: float
    log_prob: float


def by_input(
    best: Candidates, rows: np.ndarray, totals: np.ndarray, log_probs: np.ndarray
) -> Iterator[list[Continuation]]:
    """Iterate over the candidates of each input, best first; an input without candidates is left out.

    Args:
        best: what was chosen, by its scores [M].
        rows: the prefix of each among all of the step [M].
        totals: processed log-probabilities [M].
        log_probs: the model's own [M].
    """
    columns = (best.groups, rows, best.tokens, best.scores, totals, log_probs)
    offers = list(map(Continuation._make, zip(*(column.tolist() for column in columns), strict=True)))
    starts = group_starts(best.groups).tolist() if offers else []
    for start, stop in pairwise([*starts, len(offers)]):
        yield offers[start:stop]


@dataclass
class Slots:
    """The finished hypotheses of one beam; the prefixes that still grow have its other slots.

    Args:
        width: how many slots there are.
        in_beam: hypotheses with a slot, best first.
        found: all hypotheses, in the order they were found.
    """

    width: int
    in_beam: list[Hypothesis] = field(default_factory=list)
    found: list[Hypothesis] = field(default_factory=list)

    def fill(
        self,
        offers: Sequence[Continuation],
        prefixes: Prefixes,
        ends: np.ndarray,
        divisor: float,
        eos_id: int,
    ) -> tuple[list[Continuation], list[Continuation]]:
        """Give out the slots of one step.

        Args:
            offers: continuations of the beam's prefixes, best first.
            prefixes: all rows of the step.
            ends: see `StepScores`.
            divisor: of the length penalty for what ends at this step.
            eos_id: the token that ends a text.

        Returns:
            The continuations that grow on, best first, and those that end here.
        """
        waiting, self.in_beam = self.in_beam, []
        grown: list[Continuation] = []
        ended: list[Continuation] = []
        for offer in offers:
            free = self.width - len(grown)
            while waiting and len(self.in_beam) < free and waiting[0].rank_score >= offer.choice / divisor:
                self.in_beam.append(waiting.pop(0))
            if len(self.in_beam) >= free:
                break
            if offer.token != eos_id:
                grown.append(offer)
                continue
            text = prefixes.tokens[offer.row].tolist()
            hypothesis = Hypothesis.of(text, offer.log_prob, bool(ends[offer.row]), offer.total / divisor)
            self.in_beam.append(hypothesis)
            self.found.append(hypothesis)
            ended.append(offer)
        self.in_beam += waiting[: self.width - len(grown) - len(self.in_beam)]
        self.in_beam.sort(key=best_first)  # where they are not chosen by the score they are ranked by
        return grown, ended


def best_first(hypothesis: Hypothesis) -> float:
    """Return a sort key; equal scores stay in their order."""
    return -hypothesis.rank_score
