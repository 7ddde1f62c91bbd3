"""The cache of a Transformer in decoding: keys and values of the source, once for each input, and of each row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddle_dialog.models.arrays.operators import padding_mask
from paddle_dialog.models.arrays.row_inputs import RowInputs

GROWTH = 4  # positions added to a full cache


class AttentionCache(NamedTuple):
    """Keys and values for the decoder's layers; those of L layers are the 2L parts of one array."""

    rows: RowInputs  # N rows of B inputs
    memory: np.ndarray  # of the source [B, P, 2L, D], where P is S, or heads * S of a short one
    mask: np.ndarray  # additive [B, 1, 1, S]
    past: np.ndarray  # of the target so far [N, at least `length`, 2L, D]
    length: int  # positions in `past`

    @classmethod
    def of(cls, memory: np.ndarray, lengths: np.ndarray, size: int | None = None) -> AttentionCache:
        """Make the cache before the first position, a row for each source of lengths [B]; `size` is S if not P."""
        batch, positions, parts, width = memory.shape
        return cls(
            RowInputs.of(np.arange(batch), batch),
            memory,
            padding_mask(lengths, positions if size is None else size)[:, None, None],
            np.empty((batch, GROWTH, parts, width), dtype=np.float32),
            0,
        )

    def with_one_more(self) -> AttentionCache:
        """Return the cache with room for the next position, which `length` includes already."""
        past = self.past
        if self.length == past.shape[1]:
            more = np.empty((len(past), GROWTH, *past.shape[2:]), dtype=np.float32)
            past = np.concatenate([past, more], axis=1)
        return self._replace(past=past, length=self.length + 1)

    def reorder(self, index: np.ndarray) -> tuple[AttentionCache, np.ndarray | None]:
        """Return the cache of the rows `index` [M], and the inputs that are left [B'], or None where all are."""
        moved = self.reorder_within(index)
        rows, left = self.rows.take(index)
        if len(left) == len(self.memory):
            return moved._replace(rows=rows), None
        return moved._replace(rows=rows, memory=self.memory[left], mask=self.mask[left]), left

    def reorder_within(self, index: np.ndarray) -> AttentionCache:
        """Reorder rows that stay with their input; what belongs to the source is not copied."""
        return self._replace(past=self.past.take(index, axis=0))
