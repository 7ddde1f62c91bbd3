"""A causal Transformer (Radford et al. 2018): one stack of self-attention that reads a source and goes on from it.

The stack first reads the whole source, each position seeing those before it; what follows the source passes
through the same layers and sees the source's keys and values as its past.
"""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import CausalConfig
from paddle_dialog.layers.masks import additive_mask, causal_mask
from paddle_dialog.layers.transformer import FeedForward, KeyValue, SelfAttention, residual_dropout


class CausalLayer(nn.Layer):
    """Self-attention over the earlier positions, and feed-forward, pre-norm.

    Args:
        config: sizes; the attention weights have no dropout, as it is expensive on a CPU.
    """

    def __init__(self, config: CausalConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config.width, config.num_heads, 0.0, config.bias)
        self.feed_forward = FeedForward(config)
        self.self_attention_norm = nn.LayerNorm(config.width)
        self.feed_forward_norm = nn.LayerNorm(config.width)
        self.dropout = residual_dropout(config.dropout)

    def forward(
        self, x: Tensor, mask: Tensor | None, source: KeyValue | None = None, past: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        """Map `x` [B, T, D].

        Args:
            mask: additive, broadcastable to [B, heads, T, S + past + T].
            source: keys and values of the source, [B, heads, S, d] each.
            past: those of the positions between the source and `x`.

        Returns:
            Output [B, T, D], and the keys and values of `past` and `x`, without the source's.
        """
        y, present = self.self_attention(self.self_attention_norm(x), mask, past, source)
        x = x + self.dropout(y)
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x))[0]), present


class CausalTransformer(nn.Layer):
    """A stack of causal layers and a layer norm."""

    def __init__(self, config: CausalConfig) -> None:
        super().__init__()
        self.layers = nn.LayerList([CausalLayer(config) for _ in range(config.num_layers)])
        self.final_norm = nn.LayerNorm(config.width)

    def read(self, x: Tensor) -> tuple[Tensor, list[KeyValue]]:
        """Read embedded sources [B, S, D], padded at the end, which no real position sees.

        Returns:
            Outputs [B, S, D], and the keys and values of each layer.
        """
        mask = additive_mask(causal_mask(x.shape[1]))  # [S, S]
        read: list[KeyValue] = []
        for layer in self.layers:
            x, present = layer(x, mask)
            read.append(present)
        return self.final_norm(x), read

    def forward(
        self, x: Tensor, source: list[KeyValue], source_mask: Tensor, past: list[KeyValue] | None = None
    ) -> tuple[Tensor, list[KeyValue]]:
        """Go on from a source.

        Args:
            x: embedded positions [B, T, D] after `past`.
            source: keys and values of each layer, as `read` returns them.
            source_mask: additive [B, 1, 1, S], which hides the padding.
            past: keys and values of each layer between the source and `x`.

        Returns:
            Outputs [B, T, D], and the keys and values of each layer after the source.
        """
        batch, length, _ = x.shape
        offset = 0 if past is None else past[0][0].shape[2]
        own = additive_mask(causal_mask(offset + length)[offset:])  # [T, past + T]
        mask = paddle.concat(
            [
                source_mask.expand([batch, 1, length, source_mask.shape[-1]]),
                own.unsqueeze([0, 1]).expand([batch, 1, length, offset + length]),
            ],
            axis=-1,
        )  # [B, 1, T, S + past + T]
        presents: list[KeyValue] = []
        for index, layer in enumerate(self.layers):
            x, present = layer(x, mask, source[index], None if past is None else past[index])
            presents.append(present)
        return self.final_norm(x), presents


class CopyAttention(nn.Layer):
    """Where to copy from: one head's attention (Vaswani et al. 2017, equation 1) without values.

    Args:
        width: of queries and source D.
        depth: of the head.
    """

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, depth, bias_attr=False)
        self.key = nn.Linear(width, depth, bias_attr=False)

    def prepare(self, source: Tensor) -> Tensor:
        """Return keys [B, S, depth] of a source [B, S, D], computed once."""
        return self.key(source)

    def forward(self, x: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Return weights [B, T, S] from `x` [B, T, D]; `mask` is additive [B, 1, S]."""
        scores = paddle.matmul(self.query(x) * keys.shape[-1] ** -0.5, keys, transpose_y=True)  # [B, T, S]
        return F.softmax(scores + mask, axis=-1)
