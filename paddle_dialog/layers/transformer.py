"""The Transformer's layers and stacks (Vaswani et al. 2017), pre-norm, with cached decoding.

Projections that read the same input are one matrix (queries, keys and values of self-attention; keys and values
of cross-attention): fewer and larger products are faster on a CPU, and on a GPU with small batches. The total depths
of keys and of values may differ from the model width; each is shared out among the heads.
"""

from __future__ import annotations

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import AttentionConfig, EncoderDecoderConfig
from paddle_dialog.layers.operators import Dropout, merge_heads, split_heads

KeyValue = tuple[Tensor, Tensor]  # keys and values, each [B, heads, S, d_head]
# Keys and values of a layer, then the last inputs [B, 2, ·] of its convolutions.
LayerPast = tuple[Tensor, ...]
Padding = Literal["left", "both"]


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: nn.Layer
) -> tuple[Tensor, Tensor]:
    """Return softmax(q kᵀ / sqrt(d) + mask) v for all heads (Vaswani et al. 2017, equation 1).

    Args:
        query: [B, heads, T, d].
        key: [B, heads, S, d].
        value: [B, heads, S, d].
        mask: additive, broadcastable to [B, heads, T, S], or None.
        dropout: applied to the weights.

    Returns:
        Context [B, T, heads * d] and the weights before dropout [B, heads, T, S].
    """
    scores = paddle.matmul(query * query.shape[-1] ** -0.5, key, transpose_y=True)  # [B, heads, T, S]
    if mask is not None:
        scores = scores + mask.expand(scores.shape)  # a broadcasting sum is slower
    weights = F.softmax(scores, axis=-1)  # [B, heads, T, S]
    context = paddle.matmul(dropout(weights), value)  # [B, heads, T, d]
    return merge_heads(context), weights


class _Attention(nn.Layer):
    """What both kinds of multi-head attention have.

    Args:
        width: model width D.
        dropout: rate on the attention weights.
        key_depth: depth of all heads' queries and of their keys together, a multiple of `num_heads`; `width`
            by default.
        value_depth: the same of their values.
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        key_depth: int | None = None,
        value_depth: int | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.keys, self.values = key_depth or width, value_depth or width
        self._project(width, bias)
        self.output = nn.Linear(self.values, width, bias_attr=bias)
        self.dropout = Dropout(dropout)

    def _project(self, width: int, bias: bool) -> None:
        """Make the maps to queries, keys and values."""
        raise NotImplementedError


class SelfAttention(_Attention):
    """Multi-head attention of a sequence over itself."""

    def _project(self, width: int, bias: bool) -> None:
        self._depths = [self.keys, self.keys, self.values]
        self.query_key_value = nn.Linear(width, sum(self._depths), bias_attr=bias)

    def forward(
        self, x: Tensor, mask: Tensor | None, past: LayerPast | None = None, source: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        """Attend over `x` [B, T, D] and, where given, the `past` of earlier steps and a `source` before it.

        Returns:
            Output [B, T, D] and the keys and values of `past` and `x`.
        """
        fused = self.query_key_value(x)  # [B, T, all depths]
        query, key, value = split_heads(fused, self._depths, self.num_heads)  # [B, heads, T, d] each
        if past is not None:
            key = paddle.concat([past[0], key], axis=2)
            value = paddle.concat([past[1], value], axis=2)
        present = key, value
        if source is not None:
            key = paddle.concat([source[0], key], axis=2)
            value = paddle.concat([source[1], value], axis=2)
        context, _ = scaled_dot_product_attention(query, key, value, mask, self.dropout)  # [B, T, D]
        return self.output(context), present


class CrossAttention(_Attention):
    """Multi-head attention of the target over the encoded source."""

    def _project(self, width: int, bias: bool) -> None:
        self._depths = [self.keys, self.values]
        self.query = nn.Linear(width, self.keys, bias_attr=bias)
        self.key_value = nn.Linear(width, sum(self._depths), bias_attr=bias)

    def prepare(self, memory: Tensor) -> KeyValue:
        """Return keys and values of the encoded source [B, S, D], computed once a sequence."""
        fused = self.key_value(memory)
        key, value = split_heads(fused, self._depths, self.num_heads)  # [B, heads, S, d] each
        return key, value

    def forward(self, x: Tensor, memory: KeyValue, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attend from `x` [B, T, D]; return the output [B, T, D] and the weights [B, heads, T, S]."""
        query = split_heads(self.query(x), self._depths[:1], self.num_heads)[0]  # [B, heads, T, d]
        context, weights = scaled_dot_product_attention(query, *memory, mask, self.dropout)
        return self.output(context), weights


class FeedForward(nn.Layer):
    """Two linear maps with ReLU between (Vaswani et al. 2017, equation 2), at every position alike."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        self.expand = nn.Linear(config.width, config.inner_width, bias_attr=config.bias)
        self.contract = nn.Linear(config.inner_width, config.width, bias_attr=config.bias)

    def forward(
        self, x: Tensor, real: Tensor | None = None, past: LayerPast = ()
    ) -> tuple[Tensor, LayerPast]:
        """Map [B, T, D] to [B, T, D]; `real` and `past` are what a convolution needs."""
        return self.contract(F.relu(self.expand(x))), ()  # [B, T, inner] within


class SequenceConvolution(nn.Layer):
    """A convolution of width 3 over a sequence, as one product of three neighbouring positions.

    Args:
        input_size: width D of the input.
        output_size: width O of the output.
        padding: `left` sees the position and the two before it (causal), `both` one on either side.
    """

    WIDTH = 3

    def __init__(self, input_size: int, output_size: int, padding: Padding = "left") -> None:
        super().__init__()
        self.padding = padding
        self.projection = nn.Linear(self.WIDTH * input_size, output_size)

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map [B, T, D] to [B, T, O]; the ends are padded with zeros.

        Args:
            past: the two inputs before them [B, 2, D] in cached decoding; `left` only.

        Returns:
            Output [B, T, O] and the last two inputs [B, 2, D], the next call's `past`.
        """
        length, around = x.shape[1], self.WIDTH - 1
        if self.padding == "both":
            padded = F.pad(x, [1, 1], data_format="NLC")  # [B, T + 2, D]
        else:
            before = paddle.zeros([x.shape[0], around, x.shape[2]], x.dtype) if past is None else past
            padded = paddle.concat([before, x], axis=1)  # [B, T + 2, D]
        windows = [padded[:, start : start + length] for start in range(self.WIDTH)]
        return self.projection(paddle.concat(windows, axis=-1)), padded[:, -around:]


class ConvolutionalFeedForward(nn.Layer):
    """Linear maps and convolutions in a row, with ReLU and then dropout between them.

    Args:
        width: model width D.
        inner_width: width of the hidden layers.
        kinds: a letter a layer, `l` for linear and `c` for a convolution, e.g. `ll` or `cc`.
        padding: of the convolutions.
        dropout: rate between the layers.
    """

    def __init__(
        self, width: int, inner_width: int, kinds: str = "cc", padding: Padding = "left", dropout: float = 0.0
    ) -> None:
        super().__init__()
        sizes = [width, *[inner_width] * (len(kinds) - 1), width]
        self.layers = nn.LayerList(
            [
                SequenceConvolution(sizes[i], sizes[i + 1], padding)
                if kind == "c"
                else nn.Linear(sizes[i], sizes[i + 1])
                for i, kind in enumerate(kinds)
            ]
        )
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Tensor, real: Tensor | None = None, past: LayerPast = ()
    ) -> tuple[Tensor, LayerPast]:
        """Map [B, T, D] to [B, T, D].

        Args:
            real: float [B, T, 1], 0 on padding, which a convolution would otherwise let into real positions.
            past: what the call for the positions before returned, in cached decoding.

        Returns:
            Output [B, T, D] and, for each convolution, its last two inputs [B, 2, ·].
        """
        tails: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            if number:
                x = self.dropout(F.relu(x))  # [B, T, inner]
            if isinstance(layer, SequenceConvolution):
                x, tail = layer(x if real is None else x * real, past[len(tails)] if past else None)
                tails.append(tail)
            else:
                x = layer(x)
        return x, tuple(tails)


def residual_dropout(rate: float) -> Dropout:
    """Return dropout for [B, T, D] whose mask is shared by all positions of a row.

    Drawing T times fewer random numbers is what makes it affordable on a CPU (Gal & Ghahramani 2016 share the
    mask over time for its effect).
    """
    return Dropout(rate, axis=[0, 2])


class EncoderLayer(nn.Layer):
    """Self-attention and feed-forward, each with layer norm before, and dropout and the residual after.

    Args:
        config: sizes; the rate of dropout is that of the attention weights too.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(*_attention(config))
        self.feed_forward = _feed_forward(config, "both")
        self.self_attention_norm = nn.LayerNorm(config.width)
        self.feed_forward_norm = nn.LayerNorm(config.width)
        self.dropout = residual_dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None, real: Tensor | None = None) -> Tensor:
        """Map [B, S, D] to [B, S, D]; `mask` is additive [B, 1, 1, S], `real` float [B, S, 1]."""
        x = x + self.dropout(self.self_attention(self.self_attention_norm(x), mask)[0])
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x), real)[0])


class GraphLayer(nn.Layer):
    """Attention over the nodes of a graph, or over an encoded source, and a causal feed-forward.

    Args:
        config: as for `EncoderLayer`.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.cross_attention = CrossAttention(*_attention(config))
        self.feed_forward = _feed_forward(config, "left")
        self.cross_attention_norm = nn.LayerNorm(config.width)
        self.feed_forward_norm = nn.LayerNorm(config.width)
        self.dropout = residual_dropout(config.dropout)

    def forward(
        self, x: Tensor, memory: KeyValue, cross_mask: Tensor | None, past: LayerPast = ()
    ) -> tuple[Tensor, LayerPast, Tensor]:
        """Map `x` [B, T, D].

        Args:
            memory: `cross_attention.prepare` of the nodes [B, S, D].
            cross_mask: additive [B, 1, 1, S], or None where all nodes are real.
            past: of the feed-forward at the positions before, in cached decoding.

        Returns:
            Output [B, T, D], what the feed-forward needs at the next positions, and the attention weights
            [B, heads, T, S].
        """
        y, weights = self.cross_attention(self.cross_attention_norm(x), memory, cross_mask)
        x = x + self.dropout(y)
        y, tails = self.feed_forward(self.feed_forward_norm(x), past=past)
        return x + self.dropout(y), tails, weights


class DecoderLayer(GraphLayer):
    """Masked self-attention before attention over the source and feed-forward; arguments as for `EncoderLayer`."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__(config)
        self.self_attention = SelfAttention(*_attention(config))
        self.self_attention_norm = nn.LayerNorm(config.width)

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        memory: KeyValue,
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        past: LayerPast | None = None,
    ) -> tuple[Tensor, LayerPast, Tensor]:
        """Map `x` [B, T, D], the positions after `past`.

        Args:
            x: the target positions to compute.
            memory: `cross_attention.prepare` of the encoded source.
            self_mask: additive, broadcastable to [B, heads, T, past + T]; None in single-step decoding.
            cross_mask: additive [B, 1, 1, S].
            past: of the positions before, in cached decoding.

        Returns:
            Output [B, T, D], the past of the next positions, and the cross-attention weights [B, heads, T, S].
        """
        y, present = self.self_attention(self.self_attention_norm(x), self_mask, past)
        x = x + self.dropout(y)
        tails = () if past is None else past[2:]
        x, tails, weights = super().forward(x, memory, cross_mask, tails)
        return x, (*present, *tails), weights


class EncoderStack(nn.Layer):
    """Encoder layers and a layer norm; arguments as for `EncoderLayer`."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.layers = nn.LayerList([EncoderLayer(config) for _ in range(config.encoder_layers)])
        self.final_norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor, mask: Tensor | None, real: Tensor | None = None) -> Tensor:
        """Map the embedded source [B, S, D] to [B, S, D]; masks as for `EncoderLayer`."""
        for layer in self.layers:
            x = layer(x, mask, real)  # [B, S, D]
        return self.final_norm(x)


class DecoderStack(nn.Layer):
    """Decoder layers and a layer norm; arguments as for `EncoderLayer`."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.layers = nn.LayerList([DecoderLayer(config) for _ in range(config.decoder_layers)])
        self.final_norm = nn.LayerNorm(config.width)

    def prepare_memory(self, encoded: Tensor) -> list[KeyValue]:
        """Return each layer's keys and values of the encoded source [B, S, D]."""
        return [layer.cross_attention.prepare(encoded) for layer in self.layers]

    def forward(
        self,
        x: Tensor,
        memory: list[KeyValue],
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        past: list[LayerPast] | None = None,
    ) -> tuple[Tensor, list[LayerPast], Tensor]:
        """Map the embedded target [B, T, D]; see `DecoderLayer`.

        Returns:
            Output [B, T, D], the past of every layer, and the last layer's cross-attention weights averaged over
            heads [B, T, S].
        """
        present: list[LayerPast] = []
        weights = x  # a stack has at least one layer
        for index, layer in enumerate(self.layers):
            layer_past = None if past is None else past[index]
            x, kept, weights = layer(x, memory[index], self_mask, cross_mask, layer_past)
            present.append(kept)
        return self.final_norm(x), present, weights.mean(axis=1)


def _attention(config: EncoderDecoderConfig) -> tuple[int, int, float, bool, int | None, int | None]:
    """Return the arguments of `SelfAttention` and `CrossAttention`."""
    width, depths = config.width, (config.key_depth, config.value_depth)
    return width, config.num_heads, config.dropout, config.bias, *depths


def _feed_forward(config: EncoderDecoderConfig, padding: Padding) -> nn.Layer:
    """Return the feed-forward layer that the family has."""
    kinds = config.feed_forward
    if kinds is None:
        return FeedForward(config)
    return ConvolutionalFeedForward(config.width, config.inner_width, kinds, padding, config.dropout)
