"""Generating and copying words on arrays, with the numbers of `layers.pointer_generator`."""

from __future__ import annotations

import numpy as np

from paddle_dialog.models.numpy_operators import NumpyLinear

LEAST = np.float32(1e-30)  # as in `layers.pointer_generator`
FLOOR = np.float32(-1e3)
UNKNOWN = np.float32(-1e4)
BLOCK = 16  # rows normalised at once, so that they stay in the cache
WORDS_AT_ONCE = 1024  # of the vocabulary, so that the logits of many rows stay in the cache


def same_words(copy_ids: np.ndarray) -> np.ndarray:
    """Return which positions of a source hold the same word, 1 or 0, float32 [B, S, S] of extended ids [B, S]."""
    return (copy_ids[:, :, None] == copy_ids[:, None, :]).astype(np.float32)


class NumpyPointer:
    """The gate between generating and copying.

    Args:
        gate: H to 1.
    """

    def __init__(self, gate: NumpyLinear) -> None:
        self._gate = gate

    def __call__(
        self, hidden: np.ndarray, logits: np.ndarray, word_weights: np.ndarray, ids: np.ndarray, extra: int
    ) -> np.ndarray:
        """Return log P over the extended vocabulary.

        Args:
            hidden: decoder outputs [N, H].
            logits: of the vocabulary [N, V].
            word_weights: attention over the source, at each position that of its whole word [N, S].
            ids: extended ids of the source [N, S].
            extra: number X of ids beyond the vocabulary.

        Returns:
            float32 [N, V + X], at least `FLOOR`.
        """
        generate, copy = self._log_shares(hidden)  # [N, 1] each
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

    def label_log_probs(
        self,
        hidden: np.ndarray,
        rows: np.ndarray,
        generated: np.ndarray,
        weights: np.ndarray,
        known: np.ndarray,
    ) -> np.ndarray:
        """Return log P of given tokens, as `__call__` has them among all others.

        Args:
            hidden: decoder outputs [N, H].
            rows: the output that predicts each token [P].
            generated: log of the vocabulary's softmax at each token [P].
            weights: attention over all positions of the source that hold the token [P].
            known: whether the token is in the vocabulary, bool [P]; `generated` counts only there.

        Returns:
            float32 [P].
        """
        generate, copy = (share[rows, 0] for share in self._log_shares(hidden))  # [P] each
        produced = np.where(known, generate + generated, UNKNOWN)
        mixed: np.ndarray = np.logaddexp(produced, copy + np.log(np.maximum(weights, LEAST)))
        return np.maximum(mixed, FLOOR)

    def _log_shares(self, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log probabilities of generating and of copying, [N, 1] each."""
        gate = self._gate(hidden)  # [N, 1]
        return -np.logaddexp(np.float32(0), -gate), -np.logaddexp(np.float32(0), gate)


def label_log_softmax(
    output: NumpyLinear, hidden: np.ndarray, rows: np.ndarray, labels: np.ndarray, temperature: np.float32
) -> np.ndarray:
    """Compute log softmax(logits / temperature) at given ids, without ever holding the logits of all words.

    Args:
        output: H to V.
        hidden: decoder outputs [N, H].
        rows: the output that predicts each token [P].
        labels: its id [P]; at ids beyond the vocabulary the result has no meaning.
        temperature: > 0.

    Returns:
        float32 [P].
    """
    chosen = np.zeros(len(labels), dtype=np.float32)  # [P] logits
    highest, totals = [], []  # of each part of the vocabulary, [N] each
    for start in range(0, output.size, WORDS_AT_ONCE):
        logits = output.columns(hidden, start, start + WORDS_AT_ONCE)  # [N, C]
        if temperature != 1.0:
            logits /= temperature
        inside = np.flatnonzero((labels >= start) & (labels < start + logits.shape[1]))
        chosen[inside] = logits[rows[inside], labels[inside] - start]
        highest.append(logits.max(axis=1))
        logits -= highest[-1][:, None]
        totals.append(np.exp(logits, out=logits) @ np.ones(logits.shape[1], dtype=np.float32))
    top = np.maximum.reduce(highest)  # [N]
    total = sum(part * np.exp(high - top) for part, high in zip(totals, highest, strict=True))  # [N]
    found: np.ndarray = chosen - (top + np.log(total))[rows]
    return found
