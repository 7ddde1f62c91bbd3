"""A causal Transformer (Radford et al. 2018): one stack of self-attention that reads a source and then its target.

The stack first reads the whole source, each position seeing those before it; the target passes through the same
layers and also sees the keys and values of the source.
"""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import CausalConfig
from paddle_dialog.layers.masks import additive_mask, causal_mask
from paddle_dialog.layers.transformer import EncoderLayer, FeedForward, KeyValue, SelfAttention


class CausalTransformer(nn.Layer):
    """A stack of layers and a layer norm.

    Args:
        config: sizes; the attention weights have no dropout, as it is expensive on a CPU.
    """

    def __init__(self, config: CausalConfig) -> None:
        super().__init__()
        layers = [
            EncoderLayer(
                SelfAttention(config.width, config.num_heads, 0.0, config.bias),
                FeedForward(config.width, config.inner_width, config.bias),
                config.width,
                config.dropout,
            )
            for _ in range(config.num_layers)
        ]
        self.layers = nn.LayerList(layers)
        self.final_norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, list[KeyValue]]:
        """Read embedded sources [B, S, D], padded at the end, which no real position sees.

        Args:
            mask: additive, broadcastable to [B, heads, S, S]; the causal one by default.

        Returns:
            Outputs [B, S, D], and the keys and values of each layer.
        """
        if mask is None:
            mask = additive_mask(causal_mask(x.shape[1]))  # [S, S]
        read: list[KeyValue] = []
        for layer in self.layers:
            x, own = layer(x, mask)
            read.append(own)
        return self.final_norm(x), read

    def decode(self, x: Tensor, source: list[KeyValue], source_mask: Tensor) -> Tensor:
        """Read embedded targets [B, T, D] after their sources.

        Args:
            source: keys and values of each layer, as `forward` returns them.
            source_mask: additive [B, 1, 1, S], which hides the padding.

        Returns:
            Outputs [B, T, D].
        """
        batch, length, _ = x.shape
        own = additive_mask(causal_mask(length)).unsqueeze([0, 1])  # [1, 1, T, T]
        mask = paddle.concat(
            [
                source_mask.expand([batch, 1, length, source_mask.shape[-1]]),
                own.expand([batch, 1, length, length]),
            ],
            axis=-1,
        )  # [B, 1, T, S + T]
        for layer, read in zip(self.layers, source, strict=True):
            x, _ = layer(x, mask, source=read)
        return self.final_norm(x)


class CopyAttention(nn.Layer):
    """Where to copy from: one head's attention (Vaswani et al. 2017, equation 1) without values.

    Args:
        width: of queries and source D.
        size: of the head.
    """

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, size, bias_attr=False)
        self.key = nn.Linear(width, size, bias_attr=False)

    def forward(self, x: Tensor, source: Tensor, mask: Tensor) -> Tensor:
        """Return weights [B, T, S] of `x` [B, T, D] over a source [B, S, D]; `mask` is additive [B, 1, S]."""
        keys = self.key(source)  # [B, S, d]
        scores = paddle.matmul(self.query(x) * keys.shape[-1] ** -0.5, keys, transpose_y=True)  # [B, T, S]
        return F.softmax(scores + mask, axis=-1)
