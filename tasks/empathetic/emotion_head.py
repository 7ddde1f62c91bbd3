"""Which of the 32 emotions a context expresses."""

from __future__ import annotations

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.masks import additive_mask
from tasks.empathetic.emotions import EMOTIONS


class EmotionHead(nn.Layer):
    """A bias-free linear map of the pooled encoder outputs, and of n-gram embeddings where these are used.

    Args:
        width: of the encoder outputs H.
        pooling: ``cls`` takes position 0; ``attention`` weighs all positions by a learned query.
        dropout: rate on the pooled features.
        ngram_buckets: rows of the n-gram table, 0 for none; row 0 is no feature.
        ngram_size: their width F.
    """

    def __init__(
        self,
        width: int,
        pooling: Literal["cls", "attention"],
        dropout: float = 0.0,
        ngram_buckets: int = 0,
        ngram_size: int = 64,
    ) -> None:
        super().__init__()
        self.query = nn.Linear(width, 1, bias_attr=False) if pooling == "attention" else None
        self.ngrams = None
        features = width
        if ngram_buckets:
            init = paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, 0.1))
            self.ngrams = nn.Embedding(ngram_buckets, ngram_size, padding_idx=0, weight_attr=init)
            features += ngram_size
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(features, len(EMOTIONS), bias_attr=False)

    def forward(self, outputs: Tensor, real: Tensor, ngrams: Tensor) -> Tensor:
        """Logits of the emotions.

        Args:
            outputs: of the encoder [B, S, H].
            real: bool [B, S].
            ngrams: buckets of each position, int64 [B, S, G]; 0 is none.

        Returns:
            [B, 32].
        """
        pooled = outputs[:, 0] if self.query is None else self._pool(outputs, real)  # [B, H]
        if self.ngrams is not None:
            flat = ngrams.flatten(1)  # [B, S * G]
            count = (flat > 0).astype(pooled.dtype).sum(-1, keepdim=True)  # [B, 1]
            # By the root of their number: a sum of many independent vectors keeps the size of one.
            summed = self.ngrams(flat).sum(1) / paddle.clip(count, min=1.0).sqrt()  # [B, F]
            pooled = paddle.concat([pooled, summed], axis=-1)
        return self.output(self.dropout(pooled))

    def _pool(self, outputs: Tensor, real: Tensor) -> Tensor:
        assert self.query is not None
        scores = self.query(outputs).squeeze(-1)  # [B, S]
        weights = F.softmax(scores + additive_mask(real, scores.dtype))  # [B, S]
        return paddle.matmul(weights.unsqueeze(1), outputs).squeeze(1)
