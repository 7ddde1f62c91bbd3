"""Ancestral sampling with temperature, top-k and nucleus (top-p) truncation."""

from __future__ import annotations

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.decoding.scores import capped
from paddle_dialog.decoding.stepping import Stepper


def sampling_distribution(log_probs: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """The distribution a token is drawn from: temperature first, then top-k, then top-p, then renormalised.

    Top-p keeps the fewest most probable tokens that hold at least `top_p` together (Holtzman et al. 2020,
    "The Curious Case of Neural Text Degeneration", section 3.1). Equal probabilities are kept by lower id.

    Args:
        log_probs: log-probabilities of one row, -inf for what is forbidden, [V].
        temperature: > 0.
        top_k: tokens kept; 0 keeps all.
        top_p: probability kept, in (0, 1].

    Returns:
        Probabilities that sum to 1, float64 [V].
    """
    scaled = log_probs.astype(np.float64) / temperature  # [V]
    probabilities = np.exp(scaled - scaled.max())
    probabilities /= probabilities.sum()
    if 0 < top_k < len(probabilities):
        least = np.partition(probabilities, -top_k)[-top_k]
        kept = _most_probable(probabilities, least)[:top_k]
        probabilities = _restricted(probabilities, kept)
    if top_p < 1:
        # Tokens below this hold less than 1 - top_p together, so the nucleus lies above.
        kept = _most_probable(probabilities, (1 - top_p) / len(probabilities))
        size = int(np.searchsorted(np.cumsum(probabilities[kept]), top_p * (1 - 1e-12))) + 1
        probabilities = _restricted(probabilities, kept[:size])
    return probabilities


def _most_probable(probabilities: np.ndarray, least: float) -> np.ndarray:
    """Ids with at least the probability `least`, most probable first, equal ones by id."""
    ids = np.flatnonzero(probabilities >= least)
    return ids[np.argsort(-probabilities[ids], kind="stable")]


def _restricted(probabilities: np.ndarray, kept: np.ndarray) -> np.ndarray:
    result = np.zeros_like(probabilities)
    result[kept] = probabilities[kept]
    return result / result.sum()


class Sampler:
    """Draws `n_best` independent texts for every input of a batch at once."""

    def __init__(self, model: StepModel, options: SearchOptions) -> None:
        self._model = model
        self._options = options

    def run(self, source: np.ndarray, lengths: np.ndarray) -> list[list[Hypothesis]]:
        """Sample.

        Args:
            source: ids, [B, S] int64.
            lengths: [B] int64.

        Returns:
            For each input its draws, highest `rank_score` (processed log-probability) first; fewer where the
            processors left no token to draw.
        """
        limits = np.asarray(self._options.limits(len(source)))  # [B]
        numbers = self._uniform_numbers(source, lengths, limits)  # one array for each draw
        draws: list[list[Hypothesis]] = [[] for _ in limits]
        owners = np.repeat(np.arange(len(limits)), self._options.n_best)  # [N]
        stepper = Stepper(self._model, source, lengths, self._options)
        stepper.follow(owners, owners)
        streams = np.arange(len(owners))  # [N] draw of each growing text
        tokens = np.zeros((len(owners), 0), dtype=np.int64)  # [N, t]
        totals, log_probs = np.zeros(len(owners)), np.zeros(len(owners))  # [N]
        while len(owners):
            scores = stepper.step(Prefixes(tokens, owners, limits[owners]))
            uniform = [float(numbers[stream][tokens.shape[1]]) for stream in streams]
            drawn = self._draw(scores.table.values, uniform)  # [N]
            alive = np.flatnonzero(drawn >= 0)
            totals[alive] += capped(scores.table.values[alive, drawn[alive]])
            log_probs[alive] += scores.table.log_probs(alive, drawn[alive])
            for row in np.flatnonzero(drawn == self._options.eos_id).tolist():
                ended = Hypothesis.of(
                    tokens[row].tolist(), float(log_probs[row]), bool(scores.ends[row]), float(totals[row])
                )
                draws[owners[row]].append(ended)
            rows = alive[drawn[alive] != self._options.eos_id]
            tokens = np.concatenate([tokens[rows], drawn[rows, None]], axis=1)  # [N', t + 1]
            owners, streams, totals, log_probs = owners[rows], streams[rows], totals[rows], log_probs[rows]
            if len(rows):
                stepper.follow(rows, owners)
        return [sorted(texts, key=lambda h: (-h.rank_score, h.tokens)) for texts in draws]

    def _uniform_numbers(
        self, source: np.ndarray, lengths: np.ndarray, limits: np.ndarray
    ) -> list[np.ndarray]:
        """Numbers in [0, 1), one for each step of each draw, from seed, input ids and draw."""
        numbers = []
        for ids, length, limit in zip(source, lengths.tolist(), limits.tolist(), strict=True):
            seed = ids[:length].ravel().tolist()
            for draw in range(self._options.n_best):
                generator = np.random.default_rng([self._options.seed, draw, *seed])
                numbers.append(generator.random(limit + 1))
        return numbers

    def _draw(self, scores: np.ndarray, uniform: list[float]) -> np.ndarray:
        """One token of each row by inverting the cumulative distribution, -1 where all are forbidden."""
        options = self._options
        drawn = np.full(len(scores), -1, dtype=np.int64)
        for row, (values, number) in enumerate(zip(scores, uniform, strict=True)):
            if values.max() == -np.inf:
                continue
            distribution = sampling_distribution(values, options.temperature, options.top_k, options.top_p)
            possible = np.flatnonzero(distribution)
            place = np.searchsorted(np.cumsum(distribution[possible]), number, side="right")
            drawn[row] = possible[min(int(place), len(possible) - 1)]  # the sum may round to just below 1
        return drawn
