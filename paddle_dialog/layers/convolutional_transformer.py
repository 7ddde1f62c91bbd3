"""Transformer layers with convolutions for feed-forward, separate key and value depths, and no attention bias.

Pre-norm throughout. Dropout is applied to the output of each sublayer; on the sum with the residual it would
erase the residual stream itself, layer after layer.
"""

from __future__ import annotations

from typing import NamedTuple

from paddle import Tensor, nn

from paddle_dialog.config.models import ConvolutionalTransformerConfig
from paddle_dialog.layers.dropout import Dropout
from paddle_dialog.layers.feed_forward import PositionwiseFeedForward
from paddle_dialog.layers.layer_norm import LayerNorm
from paddle_dialog.layers.linear import Linear
from paddle_dialog.layers.multihead import CrossAttention, KeyValue, SelfAttention

EPSILON = 1e-6


class LayerPast(NamedTuple):
    """What a decoder layer keeps of the positions before."""

    self_attention: KeyValue | None
    feed_forward: list[Tensor]  # [B, 2, ·] for each convolution


class ConvolutionalEncoderLayer(nn.Layer):
    """Self-attention and feed-forward over the whole sequence."""

    def __init__(self, config: ConvolutionalTransformerConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(*_attention(config))
        self.feed_forward = PositionwiseFeedForward(
            config.width, config.inner_width, config.feed_forward, "both", config.dropout
        )
        self.self_attention_norm = LayerNorm(config.width, EPSILON)
        self.feed_forward_norm = LayerNorm(config.width, EPSILON)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, attention_mask: Tensor, mask: Tensor) -> Tensor:
        """Map [B, S, D] to [B, S, D]; masks are additive [B, 1, 1, S] and float [B, S, 1]."""
        x = x + self.dropout(self.self_attention(self.self_attention_norm(x), attention_mask)[0])
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x), mask)[0])


class GraphLayer(nn.Layer):
    """Attention over the nodes of a graph, or over an encoded source, and a causal feed-forward."""

    def __init__(self, config: ConvolutionalTransformerConfig) -> None:
        super().__init__()
        self.cross_attention = CrossAttention(*_attention(config))
        self.feed_forward = PositionwiseFeedForward(
            config.width, config.inner_width, config.feed_forward, "left", config.dropout
        )
        self.cross_attention_norm = LayerNorm(config.width, EPSILON)
        self.feed_forward_norm = LayerNorm(config.width, EPSILON)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Tensor, memory: KeyValue, cross_mask: Tensor | None, past: LayerPast | None = None
    ) -> tuple[Tensor, LayerPast, Tensor]:
        """Map `x` [B, T, D].

        Args:
            x: the positions to compute.
            memory: `cross_attention.prepare` of the nodes [B, S, D].
            cross_mask: additive [B, 1, 1, S], or None where all nodes are real.
            past: of the positions before, in cached decoding.

        Returns:
            Output [B, T, D], what the next positions need, and the head-averaged attention weights [B, T, S].
        """
        query = self.cross_attention_norm(x)  # [B, T, D]
        y, weights = self.cross_attention(query, memory, cross_mask)  # [B, T, D], [B, heads, T, S]
        if weights.shape[1] == 1:
            averaged = weights.squeeze(1)
        else:
            averaged = self.cross_attention.averaged_weights(query, memory, cross_mask)  # [B, T, S]
        x = x + self.dropout(y)
        tails_before = None if past is None else past.feed_forward
        y, tails = self.feed_forward(self.feed_forward_norm(x), past=tails_before)
        return x + self.dropout(y), LayerPast(None, tails), averaged


class ConvolutionalDecoderLayer(GraphLayer):
    """Masked self-attention before the attention over the source and the causal feed-forward."""

    def __init__(self, config: ConvolutionalTransformerConfig) -> None:
        super().__init__(config)
        self.self_attention = SelfAttention(*_attention(config))
        self.self_attention_norm = LayerNorm(config.width, EPSILON)

    def forward(
        self,
        x: Tensor,
        memory: KeyValue,
        cross_mask: Tensor | None,
        past: LayerPast | None = None,
        self_mask: Tensor | None = None,
    ) -> tuple[Tensor, LayerPast, Tensor]:
        """Map `x` as `GraphLayer` does; `self_mask` is additive [T, past + T], None in single-step decoding."""
        key_value = None if past is None else past.self_attention
        y, present = self.self_attention(self.self_attention_norm(x), self_mask, key_value)
        x, rest, weights = super().forward(x + self.dropout(y), memory, cross_mask, past)
        return x, rest._replace(self_attention=present), weights


class ConvolutionalEncoderStack(nn.Layer):
    """Input dropout, a bias-free projection to the model width, positions, layers, and a last layer norm.

    Args:
        config: sizes.
    """

    def __init__(self, config: ConvolutionalTransformerConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.projection = Linear(config.embedding_size, config.width, bias=False)
        self.layers = nn.LayerList([ConvolutionalEncoderLayer(config) for _ in range(config.num_layers)])
        self.final_norm = LayerNorm(config.width, EPSILON)

    def forward(self, x: Tensor, positions: Tensor, attention_mask: Tensor, mask: Tensor) -> Tensor:
        """Encode a source.

        Args:
            x: embedded source [B, S, E].
            positions: their timing signal [1, S, D].
            attention_mask: additive [B, 1, 1, S].
            mask: float [B, S, 1], 0 on padding.

        Returns:
            [B, S, D].
        """
        x = self.projection(self.dropout(x)) + positions  # [B, S, D]
        for layer in self.layers:
            x = layer(x, attention_mask, mask)
        return self.final_norm(x)


class ConvolutionalDecoderStack(nn.Layer):
    """The decoder's stack; arguments as for `ConvolutionalEncoderStack`."""

    def __init__(self, config: ConvolutionalTransformerConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.projection = Linear(config.embedding_size, config.width, bias=False)
        self.layers = nn.LayerList([ConvolutionalDecoderLayer(config) for _ in range(config.num_layers)])
        self.final_norm = LayerNorm(config.width, EPSILON)

    def prepare_memory(self, encoded: Tensor) -> list[KeyValue]:
        """Return each layer's keys and values of the encoded source [B, S, D]."""
        return [layer.cross_attention.prepare(encoded) for layer in self.layers]

    def forward(
        self,
        x: Tensor,
        positions: Tensor,
        memory: list[KeyValue],
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        past: list[LayerPast] | None = None,
    ) -> tuple[Tensor, list[LayerPast], Tensor]:
        """Map the embedded target [B, T, E], whose timing signal is `positions` [1, T, D], to [B, T, D].

        Returns:
            Output [B, T, D], what the next positions need, and the last layer's head-averaged attention over the
            source [B, T, S].
        """
        x = self.projection(self.dropout(x)) + positions  # [B, T, D]
        present: list[LayerPast] = []
        weights = x
        for number, layer in enumerate(self.layers):
            layer_past = None if past is None else past[number]
            x, kept, weights = layer(x, memory[number], cross_mask, layer_past, self_mask)
            present.append(kept)
        return self.final_norm(x), present, weights


def _attention(config: ConvolutionalTransformerConfig) -> tuple[int, int, float, bool, int, int]:
    """Return the arguments of `SelfAttention` and `CrossAttention`."""
    return config.width, config.num_heads, config.dropout, False, config.key_depth, config.value_depth
