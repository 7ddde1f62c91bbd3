"""Log-probabilities of one step as NumPy arrays, and the best candidates among them.

The bookkeeping is numpy: for [640, 5700] rows of floats on one core, normalising and picking the best ten of
every ten rows takes 10 ms here and 70 ms as `paddle.log(F.softmax(x))` with `paddle.topk`.
"""

from __future__ import annotations

import numpy as np

from paddle_dialog.errors import UserError

CHUNKS = 128  # that the columns of a row are dealt into: column c is in chunk c % CHUNKS
BLOCK = 16  # rows normalised at once, so that they stay in the cache


class ScoreTable:
    """Scores of the next token of N rows.

    Args:
        scores: logits or log-probabilities, [N, V].
        normalised: they are log-probabilities already.

    Attributes:
        values: the log-probabilities, which the logits processors change in place, [N, V].
        padded: the same memory with every row filled up with -inf to a multiple of `CHUNKS` columns, [N, W].

    Raises:
        UserError: a score is not a finite number.
    """

    def __init__(self, scores: np.ndarray, normalised: bool) -> None:
        rows, columns = scores.shape
        width = -(-columns // CHUNKS) * CHUNKS
        self.padded = np.empty((rows, width), dtype=scores.dtype)
        self.padded[:, columns:] = -np.inf
        self.values = self.padded[:, :columns]
        self._raw = scores
        self._normalisers = np.zeros((rows, 1), dtype=scores.dtype)  # [N, 1]
        for start in range(0, rows, BLOCK):
            part = slice(start, start + BLOCK)
            block = scores[part]  # [R, V]
            highest = block.max(axis=1, keepdims=True)  # [R, 1]
            if not np.isfinite(highest).all():
                raise UserError(
                    "decoding: the model's scores hold NaN or infinity, its weights are damaged; load others"
                )
            if not normalised:
                exponentials = np.subtract(block, highest, out=self.values[part])
                total = np.exp(exponentials, out=exponentials).sum(axis=1, keepdims=True)  # [R, 1]
                self._normalisers[part] = highest + np.log(total)
            np.subtract(block, self._normalisers[part], out=self.values[part])

    def log_probs(self, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Return the model's own log-probabilities, whatever the processors did.

        Args:
            rows: [M].
            tokens: [M].

        Returns:
            At most 0, float64 [M].
        """
        return capped(self._raw[rows, tokens] - self._normalisers[rows, 0])


def best_candidates(
    table: ScoreTable, totals: np.ndarray, groups: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the `count` best candidates of every group of rows; ties go to the earlier row, then the lower id.

    The `count`-th highest of the chunk maxima of a group cannot exceed its `count`-th best candidate,
    since each chunk contributes one of them. Everything below it is dropped before sorting.

    Args:
        table: log-probabilities, at most 0, of N rows.
        totals: score of each row so far, float64 [N].
        groups: group number of each row, non-decreasing, [N].
        count: candidates of a group at most; none has a score of -inf.

    Returns:
        The row that each continues [M], its token [M], and the score of the row plus that of the token, float64
        [M]; ordered by group and within a group best first.
    """
    rows, width = table.padded.shape
    chunked = table.padded.reshape(rows, width // CHUNKS, CHUNKS)  # chunk c: columns c, c + CHUNKS, ...
    highest = chunked.max(axis=1)  # [N, CHUNKS]
    first = group_starts(groups)  # [G] first row of each group
    group = np.searchsorted(first, np.arange(rows), side="right") - 1  # [N]
    slot = np.arange(rows) - first[group]  # [N] number of the row within its group
    reachable = np.full((len(first), int(slot.max()) + 1, CHUNKS), -np.inf)  # [G, K, CHUNKS]
    reachable[group, slot] = totals[:, None] + highest
    bounds = _row_bounds(_highest(reachable.reshape(len(first), -1), count)[group], totals, highest.dtype)
    row, chunk = np.nonzero(highest >= bounds[:, None])  # [C], [C]
    log_probs = chunked[row, :, chunk]  # [C, W / CHUNKS]
    hit, place = np.nonzero(log_probs >= bounds[row, None])  # [M], [M]
    log_probs, row, token = log_probs[hit, place], row[hit], place * CHUNKS + chunk[hit]  # [M], [M], [M]
    if log_probs.size and log_probs.max() > 1e-3:
        raise ValueError("a logits processor raised a log-probability above 0; use penalties, not bonuses")
    score = totals[row] + capped(log_probs)  # [M]
    order = np.lexsort((token, row, -score, group[row]))
    ordered = group[row[order]]
    order = order[np.arange(len(order)) - np.searchsorted(ordered, ordered) < count]
    return row[order], token[order], score[order]


def group_starts(groups: np.ndarray) -> np.ndarray:
    """Return the first row of each group, [G].

    Args:
        groups: group of each row, the rows of a group together, [N], N >= 1.
    """
    if groups[0] == groups[-1]:
        return np.zeros(1, dtype=np.int64)
    changes = np.flatnonzero(groups[1:] != groups[:-1])  # [G - 1]
    starts = np.zeros(len(changes) + 1, dtype=np.int64)
    np.add(changes, 1, out=starts[1:])
    return starts


def _highest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the `count`-th highest value of each row, -inf where there are fewer, [G]."""
    if values.shape[1] < count:
        return np.full(len(values), -np.inf)
    return np.partition(values, -count, axis=1)[:, -count]


def _row_bounds(bound: np.ndarray, totals: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return what a token must score to reach `bound` with its row, rounded down to lose no candidate."""
    forbidden = float(np.finfo(dtype).min) / 2  # -inf counts as anything below this
    least = np.maximum(bound - totals - 1e-9 * (1.0 + np.abs(totals)), forbidden)
    return np.nextafter(least.astype(dtype), np.array(-np.inf, dtype))


def capped(log_probs: np.ndarray) -> np.ndarray:
    """Return log-probabilities as float64, with values that rounding put above 0 set to 0."""
    return np.minimum(log_probs.astype(np.float64), 0.0)
