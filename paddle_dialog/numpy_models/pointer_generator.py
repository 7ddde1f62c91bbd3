"""Generating and copying words on arrays, with the numbers of ``layers.pointer_generator``."""

from __future__ import annotations

import numpy as np

from paddle_dialog.numpy_models.operators import Linear

LEAST = np.float32(1e-30)  # as there
FLOOR = np.float32(-1e3)
UNKNOWN = np.float32(-1e4)
BLOCK = 16  # rows normalised at once, so that they stay in the cache


def same_words(copy_ids: np.ndarray) -> np.ndarray:
    """Which positions of a source hold the same word, 1 or 0, float32 [B, S, S] of extended ids [B, S]."""
    return (copy_ids[:, :, None] == copy_ids[:, None, :]).astype(np.float32)


class NumpyPointer:
    """The gate between generating and copying.

    Args:
        gate: H to 1.
    """

    def __init__(self, gate: Linear) -> None:
        self._gate = gate

    def __call__(
        self, hidden: np.ndarray, logits: np.ndarray, word_weights: np.ndarray, ids: np.ndarray, extra: int
    ) -> np.ndarray:
        """log P over the extended vocabulary.

        Args:
            hidden: decoder outputs [N, H].
            logits: of the vocabulary [N, V].
            word_weights: attention over the source, at each position that of its whole word [N, S].
            ids: extended ids of the source [N, S].
            extra: number X of ids beyond the vocabulary.

        Returns:
            float32 [N, V + X], at least ``FLOOR``.
        """
        gate = self._gate(hidden)  # [N, 1]
        generate, copy = (
            -np.logaddexp(np.float32(0), -gate),
            -np.logaddexp(np.float32(0), gate),
        )  # [N, 1] each
        copied = copy + np.log(np.maximum(word_weights, LEAST))  # [N, S]
        count, size = logits.shape
        scores = np.empty((count, size + extra), dtype=np.float32)  # [N, V + X]
        scores[:, size:] = UNKNOWN
        exponentials = np.empty((BLOCK, size), dtype=np.float32)
        for start in range(0, count, BLOCK):
            block = slice(start, start + BLOCK)
            part, out = logits[block], scores[block]  # [R, V], [R, V + X]
            highest = part.max(axis=1, keepdims=True)  # [R, 1]
            powers = np.subtract(part, highest, out=exponentials[: len(part)])
            total = np.exp(powers, out=powers).sum(axis=1, keepdims=True)  # [R, 1]
            np.add(part, generate[block] - highest - np.log(total), out=out[:, :size])
            mixed = np.logaddexp(np.take_along_axis(out, ids[block], axis=1), copied[block])  # [R, S]
            np.put_along_axis(out, ids[block], mixed, axis=1)
            np.maximum(out, FLOOR, out=out)
        return scores
