"""The network, an encoder with pooling over the real positions, and the linear classifier beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn
from scipy.sparse import csr_matrix, diags_array

from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.layers.embeddings import TokenEmbedding
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.layers.transformer import residual_dropout
from paddle_dialog.linear_classifier import LinearSettings, fit_machine, fit_scale, sparse_rows
from paddle_dialog.models.families import build_encoder
from paddle_dialog.tasks.sentiment.data import ALWAYS, SentimentConfig
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.losses import mean_of

HELD_OUT = 5  # one in this many reviews is held out to fit the scale of the linear classifier
SCALES = (0.05, 10.0)  # range of the scale


class SentimentNetwork(nn.Layer):
    """Scores how likely a review is good.

    The network's logit is the sum over positions i of w · (α_i h_i), and a bias, where α_i [H] are the weights of the
    pooling; so the share of each position is known.
    """

    def __init__(self, config: SentimentConfig, vocab_size: int) -> None:
        super().__init__()
        model, linear = config.model, config.linear
        self.embedding = TokenEmbedding(vocab_size, model.embedding_size, scale=model.scale_embeddings)
        # The Transformer applies dropout to embeddings after adding positions.
        self.embedding_dropout = Dropout(model.dropout if isinstance(model, LstmAttentionConfig) else 0.0)
        self.encoder = build_encoder(model)
        width, attends = self.encoder.output_size, config.pooling == "attention"
        self.query = nn.Linear(width, 1, bias_attr=False) if attends else None
        self.output = nn.Linear(width, 1)
        self.dropout = residual_dropout(model.dropout)
        self.unknown_rate = config.data.unknown_rate
        self.network_share = linear.network_share
        self.linear_table = None
        if linear.buckets:
            zeros = paddle.ParamAttr(initializer=nn.initializer.Constant(0.0), trainable=False)
            self.linear_table = self.create_parameter([linear.buckets, 1], attr=zeros)

    def forward(self, ids: Tensor, lengths: Tensor, buckets: Tensor) -> tuple[Tensor, Tensor]:
        """Judge reviews.

        Args:
            ids: [B, S].
            lengths: [B].
            buckets: those of each review's n-grams, each once, 0 where there are no more [B, M].

        Returns:
            Scores of the labels 0 and 1 by network and linear classifier together [B, 2], and the network's logit of
            label 1 alone [B], which is trained.
        """
        shares, bias = self.contributions(ids, lengths)  # [B, S]
        own = shares.sum(-1) + bias  # [B]
        answer = own.detach() * self.network_share
        if self.linear_table is not None:
            answer = answer + F.embedding(buckets, self.linear_table, padding_idx=0).sum([1, 2])
        return paddle.stack([paddle.zeros_like(answer), answer], axis=-1), own

    def contributions(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return what each position adds to the network's logit [B, S], 0 on padding, and the bias [1]."""
        real = length_mask(lengths, ids.shape[1])  # [B, S]
        if self.training and self.unknown_rate:
            hidden = paddle.rand(ids.shape) < self.unknown_rate
            ids = paddle.where(hidden, paddle.full_like(ids, Vocabulary.unk_id), ids)
        embedded = self.embedding_dropout(self.embedding(ids))  # [B, S, E]
        outputs, _ = self.encoder(embedded, lengths, real)  # [B, S, H]
        real = real.astype("float32").unsqueeze(-1)  # [B, S, 1]
        lowest = (real - 1.0) * 1e4
        if self.query is None:
            greatest = (outputs + lowest).max(1, keepdim=True)  # [B, 1, H]
            weights = (outputs >= greatest).astype("float32") * real  # [B, S, H]
            weights = weights / weights.sum(1, keepdim=True)
        else:
            weights = F.softmax(self.query(outputs) + lowest, axis=1)  # [B, S, 1]
        shares = F.linear(weights * self.dropout(outputs) * real, self.output.weight)  # [B, S, 1]
        return shares.squeeze(-1), self.output.bias


class SentimentLoss(nn.Layer):
    """Mean cross-entropy of the network's own logits, each review with its weight."""

    def forward(self, scores: Tensor, own: Tensor, label: Tensor, weight: Tensor) -> Tensor:
        """Return the loss, a scalar, of what the network returns, labels int64 [B] and weights [B]."""
        loss = F.binary_cross_entropy_with_logits(own, label.astype(own.dtype), reduction="none") * weight
        return mean_of(loss.sum(), weight.sum())


def fit_linear(buckets: Sequence[np.ndarray], labels: np.ndarray, size: int, penalty: float) -> np.ndarray:
    """Fit a logistic regression to n-grams scaled by their log-count ratios.

    Ratios as in Wang and Manning 2012, "Baselines and Bigrams", section 2.1, over the presence of n-grams. One scale
    turns the logits into probabilities on reviews held out of a separate fit.

    Args:
        buckets: those of each review's n-grams, each once.
        labels: 0 or 1 [N].
        penalty: inverse strength C of the regularisation.

    Returns:
        float32 [size]: the weight of each bucket; the logit of label 1 is their sum.
    """
    settings = LinearSettings(penalty, "log", scales=SCALES)
    features = sparse_rows(buckets, [np.ones(len(row)) for row in buckets], size)
    if len(np.unique(labels)) < 2:  # nothing to separate
        return np.zeros(size, dtype=np.float32)
    held_out, scale = np.arange(len(labels)) % HELD_OUT == 0, 1.0
    if len(np.unique(labels[~held_out])) == 2:
        logits = features[held_out] @ _fit(features[~held_out], labels[~held_out], settings)
        scale = fit_scale(np.stack([np.zeros_like(logits), logits], axis=1), labels[held_out], SCALES)
    return (scale * _fit(features, labels, settings)).astype(np.float32)


def _fit(features: csr_matrix, labels: np.ndarray, settings: LinearSettings) -> np.ndarray:
    """Return the weight of each bucket [size]; the bucket of every text has no ratio."""
    counts = [np.asarray(features[labels == label].sum(axis=0)).ravel() + 1.0 for label in (0, 1)]
    ratios = np.log(counts[1] / counts[1].sum()) - np.log(counts[0] / counts[0].sum())  # [size]
    ratios[ALWAYS] = 1.0
    return fit_machine(features @ diags_array(ratios), labels, settings) * ratios
