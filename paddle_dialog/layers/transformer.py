"""The Transformer's layers and stacks (Vaswani et al. 2017), pre-norm or post-norm, with cached decoding."""

from __future__ import annotations

import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.layers.dropout import Dropout
from paddle_dialog.layers.layer_norm import LayerNorm
from paddle_dialog.layers.linear import Linear
from paddle_dialog.layers.multihead import CrossAttention, KeyValue, SelfAttention
from paddle_dialog.layers.sizes import LayerSizes


class FeedForward(nn.Layer):
    """Two linear maps with a non-linearity between (Vaswani et al. 2017, equation 2), at every position alike."""

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__()
        self.expand = Linear(sizes.width, sizes.inner_width, sizes.bias)
        self.contract = Linear(sizes.inner_width, sizes.width, sizes.bias)
        self.activation = {"relu": F.relu, "gelu": F.gelu}[sizes.activation]

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, T, D] to [B, T, D]."""
        return self.contract(self.activation(self.expand(x)))  # [B, T, inner] within


def residual_dropout(rate: float) -> Dropout:
    """Return dropout for [B, T, D] whose mask is shared by all positions of a row.

    Drawing T times fewer random numbers is what makes it affordable on a CPU (Gal & Ghahramani 2016 share the
    mask over time for its effect).
    """
    return Dropout(rate, axis=[0, 2])


class EncoderLayer(nn.Layer):
    """Self-attention and feed-forward, each with residual, dropout and layer norm.

    Args:
        config: sizes and switches; `norm` `pre` normalises the sublayer's input, `post` the sum (the paper's).
            The rate of dropout is that of the attention weights too.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.self_attention = SelfAttention(config.width, config.num_heads, config.dropout, config.bias)
        self.feed_forward = FeedForward(config)
        self.self_attention_norm = LayerNorm(config.width)
        self.feed_forward_norm = LayerNorm(config.width)
        self.dropout = residual_dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map [B, S, D] to [B, S, D]; `mask` is additive [B, 1, 1, S]."""
        if self.pre_norm:
            x = x + self.dropout(self.self_attention(self.self_attention_norm(x), mask)[0])
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        x = self.self_attention_norm(x + self.dropout(self.self_attention(x, mask)[0]))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


class DecoderLayer(nn.Layer):
    """Masked self-attention, attention over the source, and feed-forward; arguments as for `EncoderLayer`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        attention = (config.width, config.num_heads, config.dropout, config.bias)
        self.pre_norm = config.norm == "pre"
        self.self_attention = SelfAttention(*attention)
        self.cross_attention = CrossAttention(*attention)
        self.feed_forward = FeedForward(config)
        self.self_attention_norm = LayerNorm(config.width)
        self.cross_attention_norm = LayerNorm(config.width)
        self.feed_forward_norm = LayerNorm(config.width)
        self.dropout = residual_dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: KeyValue,
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        past: KeyValue | None = None,
    ) -> tuple[Tensor, KeyValue, Tensor]:
        """Map `x` [B, T, D], the positions after `past`.

        Args:
            x: the target positions to compute.
            memory: `cross_attention.prepare` of the encoded source.
            self_mask: additive, broadcastable to [B, heads, T, past + T]; None in single-step decoding.
            cross_mask: additive [B, 1, 1, S].
            past: keys and values of the positions before, in cached decoding.

        Returns:
            Output [B, T, D], keys and values up to here, and the cross-attention weights [B, heads, T, S].
        """
        if self.pre_norm:
            y, present = self.self_attention(self.self_attention_norm(x), self_mask, past)
            x = x + self.dropout(y)
            y, weights = self.cross_attention(self.cross_attention_norm(x), memory, cross_mask)
            x = x + self.dropout(y)
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x))), present, weights
        y, present = self.self_attention(x, self_mask, past)
        x = self.self_attention_norm(x + self.dropout(y))
        y, weights = self.cross_attention(x, memory, cross_mask)
        x = self.cross_attention_norm(x + self.dropout(y))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x))), present, weights


class EncoderStack(nn.Layer):
    """Encoder layers; pre-norm stacks end with a layer norm. Arguments as for `EncoderLayer`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.LayerList([EncoderLayer(config) for _ in range(config.encoder_layers)])
        self.final_norm = LayerNorm(config.width) if config.norm == "pre" else None

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map the embedded source [B, S, D] to [B, S, D]; `mask` is additive [B, 1, 1, S]."""
        for layer in self.layers:
            x = layer(x, mask)  # [B, S, D]
        return x if self.final_norm is None else self.final_norm(x)


class DecoderStack(nn.Layer):
    """Decoder layers; pre-norm stacks end with a layer norm. Arguments as for `EncoderLayer`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.LayerList([DecoderLayer(config) for _ in range(config.decoder_layers)])
        self.final_norm = LayerNorm(config.width) if config.norm == "pre" else None

    def prepare_memory(self, encoded: Tensor) -> list[KeyValue]:
        """Return each layer's keys and values of the encoded source [B, S, D]."""
        return [layer.cross_attention.prepare(encoded) for layer in self.layers]

    def forward(
        self,
        x: Tensor,
        memory: list[KeyValue],
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        past: list[KeyValue] | None = None,
    ) -> tuple[Tensor, list[KeyValue], Tensor]:
        """Map the embedded target [B, T, D]; see `DecoderLayer`.

        Returns:
            Output [B, T, D], the keys and values of every layer, and the last layer's cross-attention weights
            averaged over heads [B, T, S].
        """
        present: list[KeyValue] = []
        weights = x  # a stack has at least one layer
        for index, layer in enumerate(self.layers):
            layer_past = None if past is None else past[index]
            x, key_value, weights = layer(x, memory[index], self_mask, cross_mask, layer_past)
            present.append(key_value)
        x = x if self.final_norm is None else self.final_norm(x)
        return x, present, weights.mean(axis=1)
