"""Batched beam search; a beam of one is greedy search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.penalties import length_divisor
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.decoding.scores import Candidates, best_candidates, group_starts
from paddle_dialog.decoding.stepping import Stepper


class _Continuation(NamedTuple):
    row: int
    token: int
    total: float  # processed log-probability of the prefix with this token
    log_prob: float  # the model's own


@dataclass
class _Input:
    """The beam of one input, without the prefixes that still grow."""

    limit: int
    in_beam: list[Hypothesis] = field(default_factory=list)  # finished, with a slot, best first
    found: list[Hypothesis] = field(default_factory=list)  # finished, in the order they were found


class BeamSearch:
    """Beam search over all inputs of a batch at once.

    A beam has `beam_size` slots. At each step they go to the best of the finished hypotheses that hold one
    and the continuations of the others, compared by their score at their own length. Without a length penalty
    a hypothesis that loses its slot is forgotten, which is the textbook search and that of
    `nn.BeamSearchDecoder`; with one, a finished hypothesis without a slot still counts for the answer, since
    normalised scores fall and rise again.
    """

    def __init__(self, model: StepModel, options: SearchOptions) -> None:
        self._model = model
        self._options = options
        self._width = 1 if options.strategy == "greedy" else options.beam_size
        self._divisor = length_divisor(options.length_penalty, options.alpha)
        self._remember = options.length_penalty != "none"

    def run(self, source: np.ndarray, lengths: np.ndarray) -> list[list[Hypothesis]]:
        """Search.

        Args:
            source: ids, [B, S] int64.
            lengths: [B] int64.

        Returns:
            For each input its `n_best` hypotheses, best first; fewer where the processors allow no more.
        """
        limits = np.asarray(self._options.limits(len(source)))  # [B]
        inputs = [_Input(int(limit)) for limit in limits]
        stepper = Stepper(self._model, source, lengths, self._options)
        owners: np.ndarray = np.arange(len(inputs))  # [N] input of each growing prefix
        tokens: np.ndarray = np.zeros((len(inputs), 0), dtype=np.int64)  # [N, t]
        totals: np.ndarray = np.zeros(len(inputs))  # [N] processed log-probabilities
        log_probs: np.ndarray = np.zeros(len(inputs))  # [N] the model's own
        while len(owners):
            prefixes = Prefixes(tokens, owners, limits[owners])
            scores = stepper.step(prefixes)
            candidates = best_candidates(scores.table, totals, owners, self._width)
            log_probs = log_probs[candidates.rows] + scores.table.log_probs(
                candidates.rows, candidates.tokens
            )
            grown: list[_Continuation] = []
            for number, offers in _by_input(candidates, log_probs):
                grown += self._fill_slots(inputs[number], offers, prefixes, scores.ends)
            rows = np.array([c.row for c in grown], dtype=np.int64)  # [N']
            last = np.array([c.token for c in grown], dtype=np.int64)  # [N']
            totals = np.array([c.total for c in grown])
            log_probs = np.array([c.log_prob for c in grown])
            tokens = np.concatenate([tokens[rows], last[:, None]], axis=1)  # [N', t + 1]
            owners = owners[rows]
            if len(rows):
                stepper.follow(rows, owners)
        return [self._answer(beam)[: self._options.n_best] for beam in inputs]

    def _fill_slots(
        self, beam: _Input, offers: list[_Continuation], prefixes: Prefixes, ends: np.ndarray
    ) -> list[_Continuation]:
        """Give out the slots of one input.

        Args:
            beam: the input; its finished hypotheses are updated.
            offers: continuations of its prefixes, best first.
            prefixes: all rows of the step.
            ends: see `StepScores`.

        Returns:
            The prefixes that go on, best first; none when the answer is decided.
        """
        divisor = self._divisor(prefixes.length + 1)
        waiting, beam.in_beam = beam.in_beam, []
        open_slots: list[_Continuation] = []
        for offer in offers:
            rank_score = offer.total / divisor
            free = self._width - len(open_slots)
            while waiting and len(beam.in_beam) < free and waiting[0].rank_score >= rank_score:
                beam.in_beam.append(waiting.pop(0))
            if len(beam.in_beam) >= free:
                break
            if offer.token != self._options.eos_id:
                open_slots.append(offer)
                continue
            text = prefixes.tokens[offer.row].tolist()
            ended = Hypothesis.of(text, offer.log_prob, bool(ends[offer.row]), rank_score)
            beam.in_beam.append(ended)
            beam.found.append(ended)
        beam.in_beam += waiting[: self._width - len(open_slots) - len(beam.in_beam)]
        return [] if self._is_decided(beam, open_slots) else open_slots

    def _answer(self, beam: _Input) -> list[Hypothesis]:
        """Return the finished hypotheses so far, best first; equal scores in the order they were found."""
        everything = sorted(beam.found, key=lambda hypothesis: -hypothesis.rank_score)
        if self._remember:
            return everything
        # Needed only if the processors left the prefixes that took its slot without a continuation.
        return beam.in_beam + [h for h in everything if not any(h is kept for kept in beam.in_beam)]

    def _is_decided(self, beam: _Input, going_on: list[_Continuation]) -> bool:
        """Return whether no continuation can still enter the answer.

        Every further token adds at most 0 to a log-probability, which is at most 0 itself, and the divisor is
        largest at the length limit: no text with this prefix can score above total / divisor(limit + 1). A later
        hypothesis of equal score ranks behind.
        """
        count = self._options.n_best
        if not going_on or not self._options.early_stopping:
            return False
        settled = self._answer(beam) if self._remember else beam.in_beam
        if len(settled) < count:
            return False
        reachable = going_on[0].total / self._divisor(beam.limit + 1)
        return settled[count - 1].rank_score >= reachable


def _by_input(candidates: Candidates, log_probs: np.ndarray) -> Iterator[tuple[int, list[_Continuation]]]:
    """Iterate over the candidates of each input with its number; an input without candidates is left out."""
    columns = (candidates.rows, candidates.tokens, candidates.scores, log_probs)
    offers = list(map(_Continuation._make, zip(*(column.tolist() for column in columns), strict=True)))
    starts = group_starts(candidates.groups).tolist() if offers else []
    for start, stop in pairwise([*starts, len(offers)]):
        yield int(candidates.groups[start]), offers[start:stop]
