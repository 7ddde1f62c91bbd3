"""The classifier of the emotions of a context."""

from __future__ import annotations

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.masks import additive_mask
from paddle_dialog.layers.operators import Dropout
from tasks.empathetic.data.ngrams import LEAST_CLARITY, column_weights


class EmotionHead(nn.Layer):
    """A bias-free linear map of the pooled encoder outputs, and a linear classifier of n-grams beside it.

    The map is trained; the classifier (`tasks.empathetic.data.emotion_classifier`) is fitted to the training
    texts before and stays fixed. `answer` combines the two.

    Args:
        width: of the encoder outputs H.
        emotions: how many there are, C.
        pooling: `cls` takes position 0; `attention` weighs all positions by a learned query.
        dropout: rate on the pooled features.
        ngram_buckets: rows of the n-gram table, 0 for none; row 0 is no feature.
        encoder_share: factor of the encoder's logits in the answer, where there are n-grams.
        character_weight: of the n-grams of characters beside those of words.
        tells_plain: whether the n-grams also tell contexts without emotion.
    """

    def __init__(
        self,
        width: int,
        emotions: int,
        pooling: Literal["cls", "attention"],
        dropout: float = 0.0,
        ngram_buckets: int = 0,
        encoder_share: float = 1.0,
        character_weight: float = 1.0,
        tells_plain: bool = False,
    ) -> None:
        super().__init__()
        self.query = nn.Linear(width, 1, bias_attr=False) if pooling == "attention" else None
        self.has_ngrams = ngram_buckets > 0
        if self.has_ngrams:  # buffers, so that no optimiser changes them
            self.register_buffer("ngram_table", paddle.zeros([ngram_buckets, emotions]))
            self.register_buffer("ngram_idf", paddle.zeros([ngram_buckets]))
            if tells_plain:
                self.register_buffer("ngram_plainness", paddle.zeros([ngram_buckets]))
        self.tells_plain = tells_plain
        self.encoder_share = encoder_share
        self.column_weights = column_weights(character_weight)  # [G]
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(width, emotions, bias_attr=False)

    def forward(self, outputs: Tensor, real: Tensor) -> Tensor:
        """Return the encoder's logits [B, C] of the emotions, which are trained.

        Args:
            outputs: of the encoder [B, S, H].
            real: bool [B, S].
        """
        pooled = outputs[:, 0] if self.query is None else self._pool(outputs, real)  # [B, H]
        return self.output(self.dropout(pooled))

    def answer(self, logits: Tensor, ngrams: Tensor) -> Tensor:
        """Combine the logits [B, C] of both classifiers, without a gradient.

        Args:
            logits: by the encoder [B, C].
            ngrams: buckets of each position, int64 [B, S, G]; 0 is none.
        """
        if not self.has_ngrams:
            return logits.detach()
        buckets = ngrams.flatten(1)  # [B, S * G]
        weights = self.ngram_idf[ngrams] * paddle.to_tensor(self.column_weights)  # [B, S, G]
        weights = F.normalize(weights.flatten(1), axis=-1)  # [B, S * G]
        rows = F.embedding(buckets, self.ngram_table)  # [B, S * G, C]
        by_ngrams = paddle.matmul(weights.unsqueeze(1), rows).squeeze(1)  # [B, C]
        joined = self.encoder_share * logits.detach() + by_ngrams
        if not self.tells_plain:
            return joined
        plainness = (weights * self.ngram_plainness[buckets]).sum(-1) - self.ngram_plainness[0]  # [B]
        clarity = LEAST_CLARITY + (1 - LEAST_CLARITY) * F.sigmoid(-plainness)  # [B]
        return joined * clarity.unsqueeze(-1)

    def _pool(self, outputs: Tensor, real: Tensor) -> Tensor:
        assert self.query is not None
        scores = self.query(outputs).squeeze(-1)  # [B, S]
        weights = F.softmax(scores + additive_mask(real, scores.dtype))  # [B, S]
        return paddle.matmul(weights.unsqueeze(1), outputs).squeeze(1)
