"""Batched beam search; a beam of one is greedy search."""

from __future__ import annotations

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.penalties import length_divisor
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.decoding.scores import best_candidates
from paddle_dialog.decoding.slots import Continuation, Slots, best_first, by_input
from paddle_dialog.decoding.stepping import Stepper


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
        beams = [Slots(self._width) for _ in limits]
        stepper = Stepper(self._model, source, lengths, self._options)
        owners: np.ndarray = np.arange(len(beams))  # [N] input of each growing prefix
        tokens: np.ndarray = np.zeros((len(beams), 0), dtype=np.int64)  # [N, t]
        totals: np.ndarray = np.zeros(len(beams))  # [N] processed log-probabilities
        log_probs: np.ndarray = np.zeros(len(beams))  # [N] the model's own
        while len(owners):
            prefixes = Prefixes(tokens, owners, limits[owners])
            scores = stepper.step(prefixes)
            candidates = best_candidates(scores.table, totals, owners, self._width)
            log_probs = log_probs[candidates.rows] + scores.table.log_probs(
                candidates.rows, candidates.tokens
            )
            divisor = self._divisor(prefixes.length + 1)
            grown: list[Continuation] = []
            for offers in by_input(candidates, candidates.rows, candidates.scores, log_probs):
                owner = offers[0].owner
                going_on, _ = beams[owner].fill(offers, prefixes, scores.ends, divisor, self._options.eos_id)
                if not self._is_decided(beams[owner], going_on, int(limits[owner])):
                    grown += going_on
            rows = np.array([c.row for c in grown], dtype=np.int64)  # [N']
            last = np.array([c.token for c in grown], dtype=np.int64)  # [N']
            totals = np.array([c.total for c in grown])
            log_probs = np.array([c.log_prob for c in grown])
            tokens = np.concatenate([tokens[rows], last[:, None]], axis=1)  # [N', t + 1]
            owners = owners[rows]
            if len(rows):
                stepper.follow(rows, owners)
        return [self._answer(beam)[: self._options.n_best] for beam in beams]

    def _answer(self, beam: Slots) -> list[Hypothesis]:
        """Return the finished hypotheses so far, best first; equal scores in the order they were found."""
        everything = sorted(beam.found, key=best_first)
        if self._remember:
            return everything
        # Needed only if the processors left the prefixes that took its slot without a continuation.
        return beam.in_beam + [h for h in everything if not any(h is kept for kept in beam.in_beam)]

    def _is_decided(self, beam: Slots, going_on: list[Continuation], limit: int) -> bool:
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
        reachable = going_on[0].total / self._divisor(limit + 1)
        return settled[count - 1].rank_score >= reachable
