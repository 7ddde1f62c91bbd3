"""The Transformer's layers and stacks (Vaswani et al. 2017), pre-norm.

Projections that read the same input are one matrix (queries, keys and values of self-attention; keys and values
of cross-attention): fewer and larger products are faster on a CPU, and on a GPU with small batches. The sizes of keys
and of values may differ from the model width; each is split among the heads.
"""

from __future__ import annotations

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import CausalConfig, TransformerConfig
from paddle_dialog.layers.masks import additive_mask, causal_mask
from paddle_dialog.layers.operators import Dropout, merge_heads, split_heads

KeyValue = tuple[Tensor, Tensor]  # keys and values, each [B, heads, S, d_head]
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
        key_size: of all heads' queries and of their keys together, a multiple of `num_heads`; `width` by default.
        value_size: the same of their values.
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        key_size: int | None = None,
        value_size: int | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.key_size, self.value_size = key_size or width, value_size or width
        self._project(width, bias)
        self.output = nn.Linear(self.value_size, width, bias_attr=bias)
        self.dropout = Dropout(dropout)

    def _project(self, width: int, bias: bool) -> None:
        """Make the maps to queries, keys and values."""
        raise NotImplementedError


class SelfAttention(_Attention):
    """Multi-head attention of a sequence over itself."""

    def _project(self, width: int, bias: bool) -> None:
        self._sizes = [self.key_size, self.key_size, self.value_size]
        self.query_key_value = nn.Linear(width, sum(self._sizes), bias_attr=bias)

    def forward(
        self, x: Tensor, mask: Tensor | None, source: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        """Attend over `x` [B, T, D] and, where given, the keys and values of a source before it.

        Returns:
            Output [B, T, D] and the keys and values of `x`.
        """
        fused = self.query_key_value(x)  # [B, T, all sizes]
        query, key, value = split_heads(fused, self._sizes, self.num_heads)  # [B, heads, T, d] each
        own = key, value
        if source is not None:
            key, value = (paddle.concat(both, axis=2) for both in zip(source, own, strict=True))
        context, _ = scaled_dot_product_attention(query, key, value, mask, self.dropout)  # [B, T, D]
        return self.output(context), own


class CrossAttention(_Attention):
    """Multi-head attention of the target over the encoded source."""

    def _project(self, width: int, bias: bool) -> None:
        self._sizes = [self.key_size, self.value_size]
        self.query = nn.Linear(width, self.key_size, bias_attr=bias)
        self.key_value = nn.Linear(width, sum(self._sizes), bias_attr=bias)

    def forward(self, x: Tensor, encoded: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attend from `x` [B, T, D] to the encoded source [B, S, D].

        Returns:
            Output [B, T, D] and the weights [B, heads, T, S].
        """
        query = split_heads(self.query(x), self._sizes[:1], self.num_heads)[0]  # [B, heads, T, d]
        key, value = split_heads(self.key_value(encoded), self._sizes, self.num_heads)  # [B, heads, S, d]
        context, weights = scaled_dot_product_attention(query, key, value, mask, self.dropout)
        return self.output(context), weights


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
        self.padding = [2, 0] if padding == "left" else [1, 1]
        self.projection = nn.Linear(self.WIDTH * input_size, output_size)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, T, D] to [B, T, O]; the ends are padded with zeros."""
        padded = F.pad(x, self.padding, data_format="NLC")  # [B, T + 2, D]
        windows = [padded[:, start : start + x.shape[1]] for start in range(self.WIDTH)]
        return self.projection(paddle.concat(windows, axis=-1))


class FeedForward(nn.Layer):
    """Two maps with ReLU between (Vaswani et al. 2017, equation 2).

    Args:
        width: model width D.
        inner_width: width of the hidden layer.
        bias: of the linear maps; convolutions always have one.
        kinds: a letter a map, `l` for linear and `c` for a convolution.
        padding: of the convolutions.
        dropout: rate after the ReLU, where there is a convolution.
    """

    def __init__(
        self,
        width: int,
        inner_width: int,
        bias: bool = True,
        kinds: str = "ll",
        padding: Padding = "left",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.convolves = "c" in kinds

        def layer(kind: str, inputs: int, outputs: int) -> nn.Layer:
            if kind == "c":
                return SequenceConvolution(inputs, outputs, padding)
            return nn.Linear(inputs, outputs, bias_attr=bias)

        self.expand = layer(kinds[0], width, inner_width)
        self.contract = layer(kinds[1], inner_width, width)
        self.dropout = Dropout(dropout if self.convolves else 0.0)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Map [B, T, D] to [B, T, D]; `keep` [B, T, 1] is 0 on padding, which convolutions must not see."""
        if not self.convolves or keep is None:
            return self.contract(self.dropout(F.relu(self.expand(x))))  # [B, T, inner] within
        return self.contract(self.dropout(F.relu(self.expand(x * keep))) * keep)


def residual_dropout(rate: float) -> Dropout:
    """Return dropout for [B, T, D] whose mask is shared by all positions of a row.

    Drawing T times fewer random numbers is what makes it affordable on a CPU (Gal & Ghahramani 2016 share the
    mask over time for its effect).
    """
    return Dropout(rate, axis=[0, 2])


class EncoderLayer(nn.Layer):
    """Self-attention and feed-forward, each with layer norm before, and dropout and the residual after.

    Args:
        width: model width D.
        dropout: rate on the output of both.
    """

    def __init__(
        self, self_attention: SelfAttention, feed_forward: FeedForward, width: int, dropout: float
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.self_attention_norm = nn.LayerNorm(width)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = residual_dropout(dropout)

    def forward(
        self, x: Tensor, mask: Tensor | None, keep: Tensor | None = None, source: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        """Map `x` [B, T, D] to [B, T, D]; also return its own keys and values.

        Args:
            mask: additive, broadcastable to [B, heads, T, S + T].
            keep: float [B, T, 1], 0 on padding, which convolutions must not see.
            source: keys and values of what stands before, [B, heads, S, d] each.
        """
        y, own = self.self_attention(self.self_attention_norm(x), mask, source)
        x = x + self.dropout(y)
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x), keep)), own


class DecoderLayer(nn.Layer):
    """Masked self-attention, attention over the source, and feed-forward, as in `EncoderLayer`.

    Args:
        config: sizes; the rate of dropout is that of the attention weights too.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.cross_attention = CrossAttention(*_attention_arguments(config))
        self.feed_forward = _feed_forward(config, "left")
        self.cross_attention_norm = nn.LayerNorm(config.width)
        self.feed_forward_norm = nn.LayerNorm(config.width)
        self.dropout = residual_dropout(config.dropout)
        self.self_attention = SelfAttention(*_attention_arguments(config))
        self.self_attention_norm = nn.LayerNorm(config.width)

    def forward(
        self, x: Tensor, encoded: Tensor, self_mask: Tensor | None, cross_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Map `x` [B, T, D].

        Args:
            encoded: the source [B, S, D].
            self_mask: additive, broadcastable to [B, heads, T, T].
            cross_mask: additive [B, 1, 1, S], or None where all positions are real.

        Returns:
            Output [B, T, D] and the cross-attention weights [B, heads, T, S].
        """
        x = x + self.dropout(self.self_attention(self.self_attention_norm(x), self_mask)[0])
        y, weights = self.cross_attention(self.cross_attention_norm(x), encoded, cross_mask)
        x = x + self.dropout(y)
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x))), weights


class EncoderStack(nn.Layer):
    """Encoder layers and a layer norm; `config` as for `DecoderLayer`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = [
            EncoderLayer(
                SelfAttention(*_attention_arguments(config)),
                _feed_forward(config, "both"),
                config.width,
                config.dropout,
            )
            for _ in range(config.encoder_layers)
        ]
        self.layers = nn.LayerList(layers)
        self.final_norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor, mask: Tensor | None, keep: Tensor | None = None) -> Tensor:
        """Map the embedded source [B, S, D] to [B, S, D]; `mask` is additive [B, 1, 1, S], `keep` float [B, S, 1]."""
        for layer in self.layers:
            x, _ = layer(x, mask, keep)  # [B, S, D]
        return self.final_norm(x)


class DecoderStack(nn.Layer):
    """Decoder layers and a layer norm; `config` as for `DecoderLayer`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.LayerList([DecoderLayer(config) for _ in range(config.decoder_layers)])
        self.final_norm = nn.LayerNorm(config.width)

    def forward(
        self, x: Tensor, encoded: Tensor, self_mask: Tensor | None, cross_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Map the embedded target [B, T, D]; arguments as for `DecoderLayer`.

        Returns:
            Output [B, T, D], and the last layer's cross-attention weights averaged over heads [B, T, S].
        """
        weights = x  # a stack has at least one layer
        for layer in self.layers:
            x, weights = layer(x, encoded, self_mask, cross_mask)
        return self.final_norm(x), weights.mean(axis=1)


class CausalTransformer(nn.Layer):
    """One stack of self-attention that reads a source and then its target (Radford et al. 2018).

    It first reads the whole source, each position seeing those before it; the target passes through the same layers
    and also sees the keys and values of the source.

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


def _attention_arguments(config: TransformerConfig) -> tuple[int, int, float, bool, int | None, int | None]:
    """Return the arguments of `SelfAttention` and `CrossAttention`."""
    return config.width, config.num_heads, config.dropout, config.bias, config.key_size, config.value_size


def _feed_forward(config: TransformerConfig, padding: Padding) -> FeedForward:
    return FeedForward(
        config.width, config.inner_width, config.bias, config.feed_forward, padding, config.dropout
    )
