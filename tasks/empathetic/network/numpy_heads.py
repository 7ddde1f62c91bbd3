"""The emotion of a context over arrays."""

from __future__ import annotations

import numpy as np

from paddle_dialog.models.numpy_operators import Weights, attention_pool
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.emotions import EMOTIONS_OF
from tasks.empathetic.data.ngrams import LEAST_CLARITY, column_weights


class NumpyEmotionHead:
    """The logits of `EmotionHead.answer`.

    Args:
        config: of the network.
        weights: of the network.
        width: of the encoder's outputs D.
    """

    def __init__(self, config: EmpatheticConfig, weights: Weights, width: int) -> None:
        buckets, count = config.emotion.ngram_buckets, len(EMOTIONS_OF[config.language])
        self._query = None
        if config.emotion.head == "attention":
            self._query = weights.take("emotion_head.query.weight", width, 1)
        self._output = weights.take("emotion_head.output.weight", width, count)
        self._share = np.float32(config.emotion.encoder_share)
        self._table = self._idf = self._plainness = None
        self._column_weights = column_weights(config.emotion.character_weight)  # [G]
        if buckets:
            self._table = weights.take("emotion_head.ngram_table", buckets, count)
            self._idf = weights.take("emotion_head.ngram_idf", buckets)
            if config.emotion.small_talk:
                self._plainness = weights.take("emotion_head.ngram_plainness", buckets)

    def __call__(self, outputs: np.ndarray, lengths: np.ndarray, ngrams: np.ndarray) -> np.ndarray:
        """Return logits [B, 32].

        Args:
            outputs: of the encoder [B, S, D].
            lengths: [B].
            ngrams: buckets of each position [B, S, G].
        """
        pooled = outputs[:, 0] if self._query is None else attention_pool(outputs, self._query, lengths)
        logits = pooled @ self._output  # [B, 32]
        if self._table is None or self._idf is None:
            return logits
        logits *= self._share
        for row, buckets in enumerate(ngrams):  # [S, G]
            kept = buckets > 0  # bucket 0 means none and has no weight
            present = buckets[kept]
            weights = self._idf[present] * np.broadcast_to(self._column_weights, buckets.shape)[kept]
            length = np.sqrt(np.dot(weights, weights))
            if length > 0:
                weights /= length
                logits[row] += weights @ self._table[present]
            if self._plainness is not None:
                plainness = np.dot(weights, self._plainness[present]) - self._plainness[0]
                logits[row] *= LEAST_CLARITY + (1 - LEAST_CLARITY) / (1 + np.exp(plainness))
        return logits
