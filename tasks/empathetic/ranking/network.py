"""The ranker's network and its loss."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.layers.dropout import Dropout
from paddle_dialog.layers.embeddings import TokenEmbedding
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.models.causal_transformer.network import CausalEncoder, CausalSource
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.distributed import mean_over_ranks
from tasks.empathetic.data.encoding import ROLE, WORD
from tasks.empathetic.data.vocabulary import LISTENER_ID
from tasks.empathetic.ranking.config import RankerConfig


class ReplyRanker(nn.Layer):
    """Scores replies to a context: the stack reads the context once, then each reply as if it came next.

    A reply's score is the mean of a linear map at each of its positions. The embeddings stay as they were at the
    start, so that the ranker can share them with the generator.

    Args:
        config: sizes.
        vocab_size: V.
    """

    def __init__(self, config: RankerConfig, vocab_size: int) -> None:
        super().__init__()
        assert isinstance(config.model, CausalTransformerConfig)
        self._roles = config.emotion.roles
        self.embedding = TokenEmbedding(vocab_size, config.model.width, scale=True)
        self.encoder = CausalEncoder(config.model)
        self.dropout = Dropout(config.model.dropout)
        self.output = nn.Linear(config.model.width, 1, bias_attr=False)

    def forward(self, source: Tensor, source_lengths: Tensor, candidates: Tensor) -> Tensor:
        """Score [B, K] of candidates [B, K, T], begin and end tokens included, after packed sources [B, S, k]."""
        batch, count, length = candidates.shape
        real = length_mask(source_lengths, source.shape[1])  # [B, S]
        embedded = self.embedding(source[:, :, WORD])  # [B, S, D]
        if self._roles:
            embedded = embedded + self.embedding(source[:, :, ROLE])
        _, read = self.encoder(embedded, source_lengths, real)
        layers = [(_repeat(key, count), _repeat(value, count)) for key, value in read.layers]
        repeated = CausalSource(layers, _repeat(read.lengths, count), _repeat(read.mask, count))
        words = candidates.reshape([batch * count, length])  # [BK, T]
        x = self.embedding(words)  # [BK, T, D]
        if self._roles:
            x = x + self.embedding(paddle.full([1], LISTENER_ID, "int64"))
        x, _ = self.encoder.go_on(x, repeated)  # [BK, T, D]
        votes = self.output(self.dropout(x)).squeeze(-1)  # [BK, T]
        spoken = (words != Vocabulary.pad_id).astype(votes.dtype)  # [BK, T]
        return ((votes * spoken).sum(-1) / spoken.sum(-1)).reshape([batch, count])


class ChoiceLoss(nn.Layer):
    """Mean -log p of the first candidate among all of its context's.

    `token_nll` [B, 1] keeps the values of the last call, so a run's perplexity is that of the choice.
    """

    token_nll: Tensor

    def forward(self, scores: Tensor, label: Tensor, mask: Tensor) -> Tensor:
        """Return the loss, a scalar, of scores [B, K]; labels [B, 1] are 0, the mask [B, 1] is 1."""
        nll = F.cross_entropy(scores, label, reduction="none")  # [B, 1]
        self.token_nll = nll.detach()
        return mean_over_ranks((nll * mask).sum(), mask.sum())


def _repeat(x: Tensor, count: int) -> Tensor:
    """Repeat each row `count` times in a row: [B, …] to [B * count, …]."""
    shape = [x.shape[0], count, *x.shape[1:]]
    return x.unsqueeze(1).expand(shape).reshape([-1, *x.shape[1:]])
