"""Vectors of contexts and replies that are near each other if the one answers the other (a dual encoder)."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.dropout import Dropout
from paddle_dialog.layers.masks import additive_mask
from paddle_dialog.training.distributed import mean_over_ranks

FORBIDDEN = -1e4  # logit of a reply that does not count as wrong


class SelectionHead(nn.Layer):
    """Unit vectors of contexts and replies from the outputs of a causal stack, compared by their cosine.

    It learns from the other replies of its batch (Henderson et al. 2017, "Efficient Natural Language Response
    Suggestion for Smart Reply", section 4): the context's own is to be chosen among them.

    Args:
        width: of the stack's outputs D.
        size: of the vectors K.
        dropout: rate on the pooled outputs.
    """

    def __init__(self, width: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.context_query = nn.Linear(width, 1, bias_attr=False)
        self.reply_query = nn.Linear(width, 1, bias_attr=False)
        self.context = nn.Linear(2 * width, size, bias_attr=False)
        self.reply = nn.Linear(2 * width, size, bias_attr=False)
        self.dropout = Dropout(dropout)
        self.sharpness = self.create_parameter([1], default_initializer=nn.initializer.Constant(2.5))

    def context_vectors(self, outputs: Tensor, real: Tensor, lengths: Tensor) -> Tensor:
        """Return unit vectors [B, K] of read contexts: outputs [B, S, D], bool [B, S], lengths [B]."""
        return self._vectors(self.context, self.context_query, outputs, real, lengths)

    def reply_vectors(self, outputs: Tensor, real: Tensor, lengths: Tensor) -> Tensor:
        """Return unit vectors [B, K] of read replies: outputs [B, T, D], bool [B, T], lengths [B]."""
        return self._vectors(self.reply, self.reply_query, outputs, real, lengths)

    def forward(self, contexts: Tensor, replies: Tensor, words: Tensor) -> Tensor:
        """Compute the logit of each reply of a batch to be the answer to each context.

        Args:
            contexts: unit vectors [B, K].
            replies: unit vectors [B, K].
            words: ids of the replies [B, T]; of replies with the same words only the context's own counts.

        Returns:
            Logits [B, B], the context's own reply on the diagonal.
        """
        logits = paddle.matmul(contexts, replies, transpose_y=True) * paddle.exp(self.sharpness)  # [B, B]
        same = (words.unsqueeze(0) == words.unsqueeze(1)).all(axis=-1)  # [B, B]
        twins = same.astype("float32") - paddle.eye(len(words))
        return logits + FORBIDDEN * twins

    def _vectors(
        self, projection: nn.Linear, query: nn.Linear, outputs: Tensor, real: Tensor, lengths: Tensor
    ) -> Tensor:
        scores = query(outputs).squeeze(-1) + additive_mask(real, outputs.dtype)  # [B, S]
        pooled = paddle.matmul(F.softmax(scores).unsqueeze(1), outputs).squeeze(1)  # [B, D]
        last = F.one_hot(lengths - 1, outputs.shape[1]).unsqueeze(1)  # [B, 1, S]
        both = paddle.concat([pooled, paddle.matmul(last, outputs).squeeze(1)], axis=-1)  # [B, 2D]
        return F.normalize(projection(self.dropout(both)), axis=-1)


def selection_nll(logits: Tensor, replied: Tensor) -> Tensor:
    """Return the mean -log p of the contexts' own replies among those of their batch, a scalar.

    Args:
        logits: of each reply to answer each context, [B, B].
        replied: whether a context has a reply at all, bool [B]; an example may have an emotion alone.
    """
    nll = F.cross_entropy(logits, paddle.arange(logits.shape[0]), reduction="none").squeeze(-1)  # [B]
    counted = replied.astype(nll.dtype)  # [B]
    return mean_over_ranks((nll * counted).sum(), counted.sum())
