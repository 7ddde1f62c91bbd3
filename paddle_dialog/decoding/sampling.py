"""Ancestral sampling with temperature, top-k and nucleus (top-p) truncation."""

from __future__ import annotations

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.decoding.scores import BLOCK, CHUNKS, ScoreTable, best_candidates, capped
from paddle_dialog.decoding.stepping import Stepper


def sampling_distribution(log_probs: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """Return the distribution a token is drawn from: temperature first, then top-k, then top-p, then renormalised.

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
    """Return ids with at least the probability `least`, most probable first, equal ones by id."""
    ids = np.flatnonzero(probabilities >= least)
    return ids[np.argsort(-probabilities[ids], kind="stable")]


def _restricted(probabilities: np.ndarray, kept: np.ndarray) -> np.ndarray:
    result = np.zeros_like(probabilities)
    result[kept] = probabilities[kept]
    return result / result.sum()


def draw_tokens(
    table: ScoreTable, rows: np.ndarray, uniform: np.ndarray, temperature: float, top_k: int, top_p: float
) -> np.ndarray:
    """Draw tokens from the `sampling_distribution` of rows by inverting its cumulative sum over the ids.

    Args:
        table: log-probabilities of N rows.
        rows: the row that each of M draws is made from [M].
        uniform: numbers in [0, 1) that decide the draws [M].
        temperature, top_k, top_p: of the distribution.

    Returns:
        A token for each draw [M], -1 where its row allows none.
    """
    if 0 < top_k <= min(CHUNKS, table.values.shape[1]):
        return _draw_among_best(table, rows, uniform, temperature, top_k, top_p)
    if top_k == 0 and top_p == 1:
        return _draw_among_all(table, rows, uniform, temperature)
    drawn = np.full(len(rows), -1, dtype=np.int64)  # [M]
    for row in np.unique(rows).tolist():
        values = table.values[row]  # [V]
        if values.max() == -np.inf:
            continue
        distribution = sampling_distribution(values, temperature, top_k, top_p)  # [V]
        possible = np.flatnonzero(distribution)
        draws = np.flatnonzero(rows == row)
        places = np.searchsorted(np.cumsum(distribution[possible]), uniform[draws], side="right")
        drawn[draws] = possible[np.minimum(places, len(possible) - 1)]  # the sum may round to just below 1
    return drawn


def _draw_among_best(
    table: ScoreTable, rows: np.ndarray, uniform: np.ndarray, temperature: float, top_k: int, top_p: float
) -> np.ndarray:
    """Do what `draw_tokens` does without looking at the tokens that top-k leaves out, for all rows at once."""
    count, size = table.values.shape
    best = best_candidates(table, np.zeros(count), np.arange(count), top_k)  # of each row, best first
    first = np.searchsorted(best.rows, np.arange(count))  # [N]
    slots = np.arange(len(best.rows)) - first[best.rows]
    scaled = table.values[best.rows, best.tokens].astype(np.float64) / temperature
    probabilities = np.zeros((count, top_k))  # [N, K]
    probabilities[best.rows, slots] = np.exp(scaled - scaled[first[best.rows]])
    tokens = np.full((count, top_k), size)  # [N, K]
    tokens[best.rows, slots] = best.tokens
    possible = probabilities[:, 0] > 0  # [N]
    probabilities[possible] /= probabilities[possible].sum(axis=1, keepdims=True)
    if top_p < 1:
        kept = (np.cumsum(probabilities, axis=1) < top_p * (1 - 1e-12)).sum(axis=1) + 1  # [N]
        probabilities[np.arange(top_k) >= kept[:, None]] = 0
        probabilities[possible] /= probabilities[possible].sum(axis=1, keepdims=True)
    by_id = np.argsort(tokens, axis=1)  # [N, K]
    tokens, probabilities = (np.take_along_axis(x, by_id, axis=1) for x in (tokens, probabilities))
    last = top_k - 1 - np.argmax(probabilities[:, ::-1] > 0, axis=1)  # [N]
    places = (np.cumsum(probabilities, axis=1)[rows] <= uniform[:, None]).sum(axis=1)  # [M]
    drawn: np.ndarray = tokens[rows, np.minimum(places, last[rows])]
    return np.where(possible[rows], drawn, -1)


def _draw_among_all(
    table: ScoreTable, rows: np.ndarray, uniform: np.ndarray, temperature: float
) -> np.ndarray:
    """Do what `draw_tokens` does with whole rows, some at once, in the precision of the scores."""
    drawn = np.full(len(rows), -1, dtype=np.int64)  # [M]
    order = np.argsort(rows, kind="stable")
    bounds = np.searchsorted(rows[order], np.arange(len(table.values) + 1)).tolist()
    for start in range(0, len(table.values), BLOCK):
        values = table.values[start : start + BLOCK]  # [R, V]
        highest = values.max(axis=1, keepdims=True)  # [R, 1]
        powers = (values - np.maximum(highest, np.finfo(values.dtype).min)) / values.dtype.type(temperature)
        cumulative = np.cumsum(np.exp(powers, out=powers), axis=1, dtype=np.float64)  # [R, V]
        for row, sums in enumerate(cumulative, start=start):
            draws = order[bounds[row] : bounds[row + 1]]
            if len(draws) and sums[-1] > 0:
                last = int(np.searchsorted(sums, sums[-1]))  # the last token that is possible
                places = np.searchsorted(sums, uniform[draws] * sums[-1], side="right")
                drawn[draws] = np.minimum(places, last)  # the product may round up to the sum
    return drawn


class Sampler:
    """Draws `n_best` independent texts for every input of a batch at once.

    Draws of an input with the same prefix share a row of the model.
    """

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
        options, end = self._options, self._options.eos_id
        limits = np.asarray(options.limits(len(source)))  # [B]
        numbers = self._uniform_numbers(source, lengths, limits)  # one array for each draw
        draws: list[list[Hypothesis]] = [[] for _ in limits]
        stepper = Stepper(self._model, source, lengths, options)
        owners = np.arange(len(limits))  # [N] input of each row
        tokens = np.zeros((len(limits), 0), dtype=np.int64)  # [N, t]
        rows = np.repeat(owners, options.n_best)  # [M] row of each growing text
        streams = np.arange(len(rows))  # [M] draw of each growing text
        totals, log_probs = np.zeros(len(rows)), np.zeros(len(rows))  # [M]
        while len(rows):
            scores = stepper.step(Prefixes(tokens, owners, limits[owners]))
            uniform = np.array([numbers[stream][tokens.shape[1]] for stream in streams.tolist()])  # [M]
            drawn = draw_tokens(
                scores.table, rows, uniform, options.temperature, options.top_k, options.top_p
            )
            alive = np.flatnonzero(drawn >= 0)
            rows, streams, drawn = rows[alive], streams[alive], drawn[alive]  # [M'] from here on
            totals = totals[alive] + capped(scores.table.values[rows, drawn])
            log_probs = log_probs[alive] + scores.table.log_probs(rows, drawn)
            for place in np.flatnonzero(drawn == end).tolist():
                row, log_prob, total = rows[place], float(log_probs[place]), float(totals[place])
                ended = Hypothesis.of(tokens[row].tolist(), log_prob, bool(scores.ends[row]), total)
                draws[owners[row]].append(ended)
            on = np.flatnonzero(drawn != end)
            streams, totals, log_probs = streams[on], totals[on], log_probs[on]  # [M'']
            width = scores.table.values.shape[1]
            grown, rows = np.unique(rows[on] * width + drawn[on], return_inverse=True)  # [N'], [M'']
            parents = grown // width  # [N']
            tokens = np.concatenate([tokens[parents], (grown % width)[:, None]], axis=1)  # [N', t + 1]
            owners = owners[parents]
            if len(rows):
                stepper.follow(parents, owners)
        return [sorted(texts, key=lambda h: (-h.rank_score, h.tokens)) for texts in draws]

    def _uniform_numbers(
        self, source: np.ndarray, lengths: np.ndarray, limits: np.ndarray
    ) -> list[np.ndarray]:
        """Return numbers in [0, 1), one for each step of each draw, from seed, input ids and draw."""
        numbers = []
        for ids, length, limit in zip(source, lengths.tolist(), limits.tolist(), strict=True):
            words = np.concatenate([_seed_words(self._options.seed), [0], ids[:length].ravel()])
            place = len(words) - 1 - ids[:length].size  # of the draw
            entropy = words.astype(np.uint32)  # what a list of the numbers would become, number by number
            for draw in range(self._options.n_best):
                entropy[place] = draw
                numbers.append(np.random.default_rng(entropy).random(limit + 1))
        return numbers


def _seed_words(seed: int) -> list[int]:
    """Return a seed as NumPy's seed sequences read it: its 32-bit words, the lowest first."""
    words = [seed & 0xFFFFFFFF]
    while seed := seed >> 32:
        words.append(seed & 0xFFFFFFFF)
    return words
