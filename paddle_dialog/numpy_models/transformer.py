"""The Transformer family in decoding on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from paddle_dialog.config.schema import TransformerConfig
from paddle_dialog.layers.sinusoids import sinusoids
from paddle_dialog.numpy_models.operators import (
    LayerNorm,
    Linear,
    Weights,
    padding_mask,
    softmax,
    without_padding,
)
from paddle_dialog.numpy_models.sources import RowInputs

GROWTH = 4  # positions that a full cache is enlarged by


class TransformerState(NamedTuple):
    """What a decoding step needs; keys and values of L layers are the 2L parts of one array."""

    rows: RowInputs  # N rows of B inputs
    memory: np.ndarray  # of the source [B, S, 2L, D]
    mask: np.ndarray  # additive [B, 1, 1, S]
    aligned: np.ndarray | None  # added to the decoder's input position by position [B, S, D]
    past: np.ndarray  # of the target so far [N, at least `length`, 2L, D]
    length: int  # positions in `past`


class NumpyTransformer:
    """Offers ``StepModel`` over arrays, with the numbers of ``Transformer`` with ReLU.

    A step writes into the cache of the state it is given, which is of no use afterwards.

    Args:
        config: of the network.
        vocab_size: V.
        weights: of the network.

    Raises:
        KeyError: a weight is missing or has another shape.
    """

    uses_arrays = True

    def __init__(self, config: TransformerConfig, vocab_size: int, weights: Weights) -> None:
        width = config.width
        table = weights.take("source_embedding.table.weight", vocab_size, width)
        target = table
        if not config.share_embeddings:
            target = weights.take("own_target_embedding.table.weight", vocab_size, width)
        self._source_table, self._target_table = without_padding(table), without_padding(target)
        self._factor = np.float32(width**0.5)
        self._positions = (
            sinusoids(config.max_positions, width)
            if config.positions == "sinusoidal"
            else weights.take("positions.weight", config.max_positions, width)
        )  # [positions, D]
        self._encoder = [
            _EncoderLayer(config, weights, f"encoder.layers.{n}") for n in range(config.encoder_layers)
        ]
        self._decoder = [
            _DecoderLayer(config, weights, f"decoder.layers.{n}", 2 * n) for n in range(config.decoder_layers)
        ]
        final = config.norm == "pre"
        self._encoder_norm = LayerNorm(weights, "encoder.final_norm", width) if final else None
        self._decoder_norm = LayerNorm(weights, "decoder.final_norm", width) if final else None
        self._aligned = None
        if config.aligned_input:
            self._aligned = Linear.named(weights, "aligned_projection", width, width, bias=False)
        self._output = (
            Linear(target.T, weights.take("output.bias", vocab_size) if config.bias else None)
            if config.tie_output
            else Linear.named(weights, "output", width, vocab_size, config.bias)
        )

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> TransformerState:
        """The state before the first target token, for a source [B, S] of the given lengths [B]."""
        batch, length = source.shape
        mask = padding_mask(lengths, length)[:, None, None]  # [B, 1, 1, S]
        x = self._source_table[source] * self._factor + self._positions[:length]  # [B, S, D]
        for layer in self._encoder:
            x = layer(x, mask)  # [B, S, D]
        x = x if self._encoder_norm is None else self._encoder_norm(x)
        aligned = None
        if self._aligned is not None:
            aligned = self._aligned(x) * (np.arange(length) < lengths[:, None])[..., None]  # [B, S, D]
        memory = np.concatenate([layer.prepare(x) for layer in self._decoder], axis=-1)  # [B, S, 2LD]
        parts, width = 2 * len(self._decoder), x.shape[-1]
        past = np.empty((batch, GROWTH, parts, width), dtype=np.float32)
        rows = RowInputs.of(np.arange(batch), batch)
        return TransformerState(rows, memory.reshape(batch, length, parts, width), mask, aligned, past, 0)

    def step(self, token: np.ndarray, state: TransformerState) -> tuple[np.ndarray, TransformerState]:
        """Logits [N, V] after one more token [N], and the new state."""
        place = state.length
        if place == state.past.shape[1]:
            more = np.empty((len(token), GROWTH, *state.past.shape[2:]), dtype=np.float32)
            state = state._replace(past=np.concatenate([state.past, more], axis=1))
        x = self._target_table[token] * self._factor + self._positions[place]  # [N, D]
        if state.aligned is not None and place < state.aligned.shape[1]:
            x += state.aligned[state.rows.inputs, place]
        state = state._replace(length=place + 1)
        for layer in self._decoder:
            x = layer(x, state)  # [N, D]
        x = x if self._decoder_norm is None else self._decoder_norm(x)
        return self._output(x), state

    def reorder(self, state: TransformerState, index: np.ndarray) -> TransformerState:
        """The state of the rows ``index`` [M]."""
        moved = self.reorder_within(state, index)
        rows, left = state.rows.take(index)
        if len(left) == len(state.memory):
            return moved._replace(rows=rows)
        aligned = None if state.aligned is None else state.aligned[left]
        return moved._replace(rows=rows, memory=state.memory[left], mask=state.mask[left], aligned=aligned)

    def reorder_within(self, state: TransformerState, index: np.ndarray) -> TransformerState:
        """``reorder`` for rows that stay with their input: what belongs to the source is not copied."""
        return state._replace(past=state.past.take(index, axis=0))


class _Layer:
    """What a layer of the encoder and one of the decoder have in common."""

    def __init__(self, config: TransformerConfig, weights: Weights, name: str) -> None:
        width, bias = config.width, config.bias
        self._weights, self._name, self._width, self._bias = weights, name, width, bias
        self._heads = config.num_heads
        self._pre_norm = config.norm == "pre"
        self._query_key_value = self._linear("self_attention.query_key_value", width, 3 * width)
        self._output = self._linear("self_attention.output", width, width)
        self._expand = self._linear("feed_forward.expand", width, config.inner_width)
        self._contract = self._linear("feed_forward.contract", config.inner_width, width)
        self._self_norm = LayerNorm(weights, f"{name}.self_attention_norm", width)
        self._feed_forward_norm = LayerNorm(weights, f"{name}.feed_forward_norm", width)

    def _linear(self, name: str, inputs: int, outputs: int) -> Linear:
        return Linear.named(self._weights, f"{self._name}.{name}", inputs, outputs, self._bias)

    def _residual(
        self, x: np.ndarray, norm: LayerNorm, sublayer: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """``x`` [..., D] and what a sublayer adds to it."""
        return x + sublayer(norm(x)) if self._pre_norm else norm(x + sublayer(x))

    def _feed_forward(self, x: np.ndarray) -> np.ndarray:
        inner = self._expand(x)  # [..., inner]
        return self._contract(np.maximum(inner, np.float32(0), out=inner))


class _EncoderLayer(_Layer):
    """Self-attention and feed-forward over the source."""

    def __call__(self, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Maps [B, S, D] to [B, S, D]; ``mask`` is additive [B, 1, 1, S]."""

        def self_attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y)  # [B, S, 3D]
            width = y.shape[-1]
            query, key, value = (fused[..., part * width : (part + 1) * width] for part in range(3))
            return self._output(attend(query, key, value, mask, self._heads))  # [B, S, D]

        x = self._residual(x, self._self_norm, self_attention)
        return self._residual(x, self._feed_forward_norm, self._feed_forward)


class _DecoderLayer(_Layer):
    """One position of the target; its keys and values are parts ``part`` and ``part + 1`` of the state's arrays."""

    def __init__(self, config: TransformerConfig, weights: Weights, name: str, part: int) -> None:
        super().__init__(config, weights, name)
        width = config.width
        self._part = part
        self._query = self._linear("cross_attention.query", width, width)
        self._key_value = self._linear("cross_attention.key_value", width, 2 * width)
        self._cross_output = self._linear("cross_attention.output", width, width)
        self._cross_norm = LayerNorm(weights, f"{name}.cross_attention_norm", width)

    def prepare(self, source: np.ndarray) -> np.ndarray:
        """Keys and values [B, S, 2D] of the encoded source [B, S, D]."""
        return self._key_value(source)

    def __call__(self, x: np.ndarray, state: TransformerState) -> np.ndarray:
        """Maps [N, D] at the last of ``state.length`` positions to [N, D], and fills the cache there."""
        part, length = self._part, state.length

        def self_attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y).reshape(len(y), 3, -1)  # [N, 3, D]
            state.past[:, length - 1, part : part + 2] = fused[:, 1:]
            key, value = (state.past[:, :length, part + k] for k in range(2))  # [N, T, D] each
            return self._output(attend(fused[:, :1], key, value, None, self._heads)[:, 0])

        def cross_attention(y: np.ndarray) -> np.ndarray:
            query = state.rows.spread(self._query(y))  # [B, R, D]
            key, value = (state.memory[:, :, part + k] for k in range(2))  # [B, S, D] each
            context = attend(query, key, value, state.mask, self._heads)  # [B, R, D]
            return self._cross_output(state.rows.collect(context))

        x = self._residual(x, self._self_norm, self_attention)
        x = self._residual(x, self._cross_norm, cross_attention)
        return self._residual(x, self._feed_forward_norm, self._feed_forward)


def attend(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None, heads: int
) -> np.ndarray:
    """softmax(q kᵀ / sqrt(d) + mask) v for all heads (Vaswani et al. 2017, equation 1).

    Args:
        query: [N, T, D].
        key: [N, S, D].
        value: [N, S, D].
        mask: additive [N, 1, 1, S], or None.
        heads: D = heads * d.

    Returns:
        [N, T, D].
    """
    rows, length, width = query.shape
    size = width // heads
    query, key, value = (
        part.reshape(rows, -1, heads, size).swapaxes(1, 2) for part in (query, key, value)
    )  # [N, heads, ·, d]
    scores = np.matmul(query * np.float32(size**-0.5), key.swapaxes(2, 3))  # [N, heads, T, S]
    if mask is not None:
        scores += mask
    context = np.matmul(softmax(scores), value)  # [N, heads, T, d]
    return context.swapaxes(1, 2).reshape(rows, length, width)
