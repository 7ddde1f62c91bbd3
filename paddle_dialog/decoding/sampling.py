"""Draws of tokens by temperature, top-k and nucleus (top-p) truncation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.decoding.scores import BLOCK


def sampling_distribution(log_probs: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """Return the distributions tokens are drawn from: temperature first, then top-k, then top-p.

    Top-p keeps the fewest most probable tokens that hold at least `top_p` together (Holtzman et al. 2020,
    "The Curious Case of Neural Text Degeneration", section 3.1). Equal probabilities are kept by lower id.

    Args:
        log_probs: log-probabilities, -inf for what is forbidden, [R, V].
        temperature: > 0.
        top_k: tokens kept; 0 keeps all.
        top_p: probability kept, in (0, 1].

    Returns:
        Probabilities of each row up to a factor, all 0 where everything is forbidden, [R, V].
    """
    highest = log_probs.max(axis=1, keepdims=True)  # [R, 1]
    scaled = log_probs - np.maximum(highest, np.finfo(log_probs.dtype).min)
    weights = np.exp(scaled / log_probs.dtype.type(temperature))  # [R, V]
    if top_k or top_p < 1:
        for row in weights:
            _truncate(row, top_k, top_p)
    return weights


def _truncate(weights: np.ndarray, top_k: int, top_p: float) -> None:
    """Set the weights [V] of the tokens that top-k and top-p leave out to 0."""
    limited = 0 < top_k < len(weights)
    # Without top-k, tokens below the bound hold less than 1 - top_p together, so the nucleus lies above it.
    bound = np.partition(weights, -top_k)[-top_k] if limited else (1 - top_p) * weights.mean(dtype=np.float64)
    kept = np.flatnonzero(weights >= bound)
    kept = kept[np.argsort(-weights[kept], kind="stable")][: top_k if limited else None]
    if top_p < 1:
        held = np.cumsum(weights[kept], dtype=np.float64)
        total = held[-1] if limited else weights.sum(dtype=np.float64)
        kept = kept[: int(np.searchsorted(held, top_p * total * (1 - 1e-12))) + 1]
    values = weights[kept]
    weights[:] = 0
    weights[kept] = values


def draw_tokens(
    log_probs: np.ndarray, rows: np.ndarray, uniform: np.ndarray, temperature: float, top_k: int, top_p: float
) -> np.ndarray:
    """Draw tokens from the `sampling_distribution` of rows by inverting its cumulative sum over the ids.

    Args:
        log_probs: of N rows, [N, V].
        rows: the row that each of M draws is made from [M].
        uniform: numbers in [0, 1) that decide the draws [M].
        temperature: of the distribution, as are the next two.
        top_k: tokens kept.
        top_p: probability kept.

    Returns:
        A token for each draw [M], -1 where its row allows none.
    """
    drawn = np.full(len(rows), -1, dtype=np.int64)  # [M]
    order = np.argsort(rows, kind="stable")
    bounds = np.searchsorted(rows[order], np.arange(len(log_probs) + 1)).tolist()
    for start in range(0, len(log_probs), BLOCK):
        block = log_probs[start : start + BLOCK]  # [R, V]
        weights = sampling_distribution(block, temperature, top_k, top_p)
        cumulative = np.cumsum(weights, axis=1, dtype=np.float64)  # [R, V]
        for row, sums in enumerate(cumulative, start=start):
            draws = order[bounds[row] : bounds[row + 1]]
            if len(draws) and sums[-1] > 0:
                last = int(np.searchsorted(sums, sums[-1]))  # the last token that is possible
                places = np.searchsorted(sums, uniform[draws] * sums[-1], side="right")
                drawn[draws] = np.minimum(places, last)  # the product may round up to the sum
    return drawn


def uniform_numbers(seed: int, draws: int, ids: Sequence[int], count: int) -> list[np.ndarray]:
    """Return numbers in [0, 1) for each draw of an input, which depend on nothing but the arguments.

    Args:
        seed: of the search.
        draws: texts drawn for the input.
        ids: of the input.
        count: numbers for each draw.
    """
    return [np.random.default_rng([seed, draw, *ids]).random(count) for draw in range(draws)]
