"""Which of the 32 emotions a context expresses."""

from __future__ import annotations

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.masks import additive_mask
from tasks.empathetic.emotions import EMOTIONS

# Adam's steps are as long whatever the size of the input: this is by how much faster the n-gram table learns.
NGRAM_SCALE = 3.0


class EmotionHead(nn.Layer):
    """A bias-free linear map of the pooled encoder outputs, and a linear classifier of n-grams beside it.

    Each learns from a loss of its own: taught by the loss of their sum, the n-grams would stop learning as soon as
    the encoder knows the training examples by heart. ``combine`` makes one answer of both.

    Args:
        width: of the encoder outputs H.
        pooling: ``cls`` takes position 0; ``attention`` weighs all positions by a learned query.
        dropout: rate on the pooled features, and on which n-grams are seen.
        ngram_buckets: rows of the n-gram table, 0 for none; row 0 is no feature.
        encoder_share: factor of the encoder's logits in the answer, where there are n-grams.
    """

    def __init__(
        self,
        width: int,
        pooling: Literal["cls", "attention"],
        dropout: float = 0.0,
        ngram_buckets: int = 0,
        encoder_share: float = 1.0,
    ) -> None:
        super().__init__()
        self.query = nn.Linear(width, 1, bias_attr=False) if pooling == "attention" else None
        self.ngrams = None
        if ngram_buckets:
            init = paddle.ParamAttr(initializer=nn.initializer.Constant(0.0))
            self.ngrams = nn.Embedding(ngram_buckets, len(EMOTIONS), padding_idx=0, weight_attr=init)
        self.encoder_share = encoder_share
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, len(EMOTIONS), bias_attr=False)

    def forward(self, outputs: Tensor, real: Tensor, ngrams: Tensor) -> Tensor:
        """Logits of the emotions by each of the P = 1 or 2 classifiers.

        Args:
            outputs: of the encoder [B, S, H].
            real: bool [B, S].
            ngrams: buckets of each position, int64 [B, S, G]; 0 is none.

        Returns:
            [B, P, 32], the encoder's first.
        """
        pooled = outputs[:, 0] if self.query is None else self._pool(outputs, real)  # [B, H]
        logits = [self.output(self.dropout(pooled))]
        if self.ngrams is not None:
            logits.append(self._classify(ngrams.flatten(1)))
        return paddle.stack(logits, axis=1)

    def combine(self, logits: Tensor) -> Tensor:
        """The head's answer [B, 32] from the logits [B, P, 32] of its classifiers."""
        if logits.shape[1] == 1:
            return logits[:, 0]
        return self.encoder_share * logits[:, 0] + logits[:, 1]

    def _classify(self, buckets: Tensor) -> Tensor:
        """Logits [B, 32] of n-grams [B, N] that all weigh the same, in a vector of length NGRAM_SCALE."""
        assert self.ngrams is not None
        present = (buckets > 0).astype(self.ngrams.weight.dtype)  # [B, N]
        length = paddle.clip(present.sum(-1, keepdim=True), min=1.0).sqrt()  # [B, 1]
        weights = self.dropout(present) * (NGRAM_SCALE / length)  # [B, N]
        return paddle.matmul(weights.unsqueeze(1), self.ngrams(buckets)).squeeze(1)

    def _pool(self, outputs: Tensor, real: Tensor) -> Tensor:
        assert self.query is not None
        scores = self.query(outputs).squeeze(-1)  # [B, S]
        weights = F.softmax(scores + additive_mask(real, scores.dtype))  # [B, S]
        return paddle.matmul(weights.unsqueeze(1), outputs).squeeze(1)
