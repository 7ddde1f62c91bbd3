"""Log-probabilities of one step on the host, and the best continuations among them.

The bookkeeping is numpy: for [640, 5700] rows of floats on one core, normalising and picking the best ten of
every ten rows takes 10 ms here and 70 ms as `paddle.log(F.softmax(x))` with `paddle.topk`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import paddle

from paddle_dialog.errors import UserError

CHUNKS = 128  # columns of the summary that bounds the best scores of a row
BLOCK = 16  # rows normalised at once, so that they stay in the cache


class ScoreTable:
    """A reused [N, V] table, its rows padded with -inf to a multiple of `CHUNKS` columns.

    Attributes:
        values: the table, [N, V].
        padded: the same memory with the padding, [N, ceil(V / CHUNKS) * CHUNKS].
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, dtype=np.float32)
        self.resize(0, 0, np.dtype(np.float32))

    def resize(self, rows: int, columns: int, dtype: np.dtype) -> None:
        """Shape the table; what it held is lost.

        Args:
            rows: N.
            columns: V.
            dtype: float32 or float64.
        """
        width = -(-columns // CHUNKS) * CHUNKS
        if self._memory.size < rows * width or self._memory.dtype != dtype:
            self._memory = np.empty(rows * width, dtype=dtype)
        self.padded = self._memory[: rows * width].reshape(rows, width)  # [N, W]
        self.padded[:, columns:] = -np.inf
        self.values = self.padded[:, :columns]  # [N, V]

    def load(self, scores: paddle.Tensor, normalised: bool) -> None:
        """Fill the table with the log-probabilities of a step.

        Args:
            scores: logits or log-probabilities, [N, V].
            normalised: they are log-probabilities already.

        Raises:
            UserError: a row holds NaN or no finite score.
        """
        array = as_array(scores)  # [N, V]
        self.resize(array.shape[0], array.shape[1], array.dtype)
        for start in range(0, len(array), BLOCK):
            block, out = array[start : start + BLOCK], self.values[start : start + BLOCK]  # [R, V]
            highest = block.max(axis=1, keepdims=True)  # [R, 1]
            if not np.isfinite(highest).all():
                raise UserError(
                    "decoding: the model's scores hold NaN or infinity, its weights are damaged; load others"
                )
            if normalised:
                out[:] = block
                continue
            np.subtract(block, highest, out=out)
            out -= np.log(np.exp(out).sum(axis=1, keepdims=True))

    def copy_from(self, other: ScoreTable) -> None:
        """Take over the scores of another table.

        Args:
            other: any table.
        """
        self.resize(other.values.shape[0], other.values.shape[1], other.values.dtype)
        self.padded[:] = other.padded


def as_array(scores: paddle.Tensor) -> np.ndarray:
    """A float tensor as an array, float64 kept, anything narrower as float32; not copied from the host.

    Args:
        scores: any float tensor.

    Returns:
        An array the caller must not write to.
    """
    if scores.dtype not in (paddle.float32, paddle.float64):
        scores = scores.astype("float32")
    if scores.place.is_cpu_place():
        return np.from_dlpack(scores.detach())
    return scores.numpy()


@dataclass(frozen=True)
class Candidates:
    """The best continuations, ordered by group and within a group best first.

    Attributes:
        rows: row that is continued, [M].
        tokens: token that continues it, [M].
        scores: score of the row plus that of the token, float64 [M].
        groups: group of the row, [M].
    """

    rows: np.ndarray
    tokens: np.ndarray
    scores: np.ndarray
    groups: np.ndarray


def best_candidates(table: ScoreTable, totals: np.ndarray, groups: np.ndarray, count: int) -> Candidates:
    """The `count` best continuations of every group of rows; ties go to the earlier row, then the lower id.

    The `count`-th highest of the chunk maxima of a group cannot exceed the `count`-th best continuation,
    since every chunk contributes one of them. What lies below is dropped unsorted, which leaves few to sort.

    Args:
        table: log-probabilities, at most 0, of N rows.
        totals: score of each row so far, float64 [N].
        groups: group number of each row, non-decreasing, [N].
        count: continuations wanted in a group.

    Returns:
        At most `count` continuations of each group, none with a score of -inf.

    Raises:
        ValueError: a logits processor raised a score above 0.
    """
    rows, width = table.padded.shape
    highest = table.padded.reshape(rows, width // CHUNKS, CHUNKS).max(axis=1)  # [N, CHUNKS]
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)  # [G], [G], [N]
    slot = np.arange(rows) - first[group]  # [N] number of the row within its group
    spread = np.full((len(first), int(slot.max()) + 1, CHUNKS), -np.inf)  # [G, K, CHUNKS]
    spread[group, slot] = totals[:, None] + highest
    summary = spread.reshape(len(first), -1)  # [G, K * CHUNKS]
    if summary.shape[1] >= count:
        bound = np.partition(summary, -count, axis=1)[:, -count]  # [G]
    else:
        bound = np.full(len(first), -np.inf)
    found = np.flatnonzero(table.padded >= _row_bounds(bound[group], totals, table.padded.dtype)[:, None])
    row, token = found // width, found % width  # [M], [M]
    added = table.padded[row, token]
    if added.size and added.max() > 1e-3:
        raise ValueError(
            "a logits processor raised a log-probability above 0; use penalties instead of bonuses"
        )
    score = totals[row] + capped(added)  # [M]
    order = np.lexsort((-score, group[row]))  # stable: ties keep the order of row and token
    ordered = group[row[order]]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    order = order[rank < count]
    return Candidates(row[order], token[order], score[order], groups[row[order]])


def _row_bounds(bound: np.ndarray, totals: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """What a token must score to reach `bound` with its row, rounded down to lose no candidate."""
    forbidden = float(np.finfo(dtype).min) / 2  # -inf counts as anything below this
    least = np.where(np.isfinite(bound), bound, -np.inf) - totals
    least = np.maximum(least - 1e-9 * (1.0 + np.abs(totals)), forbidden)
    return np.nextafter(least.astype(dtype), np.array(-np.inf, dtype))


def capped(log_probs: np.ndarray) -> np.ndarray:
    """Log-probabilities as float64, without the little that rounding may put above 0.

    Args:
        log_probs: any shape.

    Returns:
        The same shape, at most 0.
    """
    return np.minimum(log_probs.astype(np.float64), 0.0)
