"""The Transformer's layers on arrays: the encoder's over a whole source, the decoder's position by position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.layers.sinusoids import sinusoids
from paddle_dialog.numpy_models.decoder_state import DecoderState
from paddle_dialog.numpy_models.operators import LayerNorm, Linear, Weights, padding_mask, softmax

SHORT = 16  # positions of a source up to which its keys and values take in the projections


def position_vectors(config: TransformerConfig, weights: Weights, name: str) -> np.ndarray:
    """The vectors of all positions [max_positions, D]; learned ones are the weight ``name``."""
    if config.positions == "sinusoidal":
        return sinusoids(max_length=config.max_positions, width=config.width)
    return weights.take(name, config.max_positions, config.width)


class EncoderStack:
    """The encoder's layers; pre-norm stacks end with a layer norm.

    Args:
        config: of the network.
        weights: of the network.
        name: of the stack.
    """

    def __init__(self, config: TransformerConfig, weights: Weights, name: str) -> None:
        self._layers = [
            _EncoderLayer(config, weights, f"{name}.layers.{n}") for n in range(config.encoder_layers)
        ]
        self._norm = _final_norm(config, weights, name)

    def __call__(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Maps the embedded source [B, S, D] of the given lengths [B] to [B, S, D]."""
        mask = padding_mask(lengths, x.shape[1])[:, None, None]  # [B, 1, 1, S]
        for layer in self._layers:
            x = layer(x, mask)  # [B, S, D]
        return x if self._norm is None else self._norm(x)


class DecoderStack:
    """The decoder's layers with their cache; arguments as for ``EncoderStack``."""

    def __init__(self, config: TransformerConfig, weights: Weights, name: str) -> None:
        self._layers = [
            _DecoderLayer(config, weights, f"{name}.layers.{n}", 2 * n) for n in range(config.decoder_layers)
        ]
        self._norm = _final_norm(config, weights, name)

    def prepare(self, encoded: np.ndarray, lengths: np.ndarray) -> DecoderState:
        """The state before the first position, for encoded sources [B, S, D] of the given lengths [B]."""
        memory = np.stack([part for layer in self._layers for part in layer.prepare(encoded)], axis=2)
        return DecoderState.of(memory, lengths, encoded.shape[1])  # memory is [B, P, 2L, D]

    def __call__(self, x: np.ndarray, state: DecoderState) -> tuple[np.ndarray, np.ndarray, DecoderState]:
        """One more position of every row, whose input is ``x`` [N, D].

        Returns:
            Output [N, D], the last layer's attention over the source for each head [B, heads, R, S], where R is the
            most rows of an input, and the new state, which takes over the memory of the old.
        """
        state = state.with_one_more()
        for layer in self._layers:
            x, weights = layer(x, state)  # [N, D], [B, heads, R, S]
        return x if self._norm is None else self._norm(x), weights, state


def _final_norm(config: TransformerConfig, weights: Weights, name: str) -> LayerNorm | None:
    return LayerNorm(weights, f"{name}.final_norm", config.width) if config.norm == "pre" else None


class LayerSizes(Protocol):
    """What the config of a Transformer of either kind says of its layers."""

    @property
    def width(self) -> int: ...

    @property
    def num_heads(self) -> int: ...

    @property
    def inner_width(self) -> int: ...

    @property
    def bias(self) -> bool: ...


class Layer:
    """What all kinds of layers have in common: self-attention, feed-forward, and a norm of each.

    Args:
        sizes: of the network.
        weights: of the network.
        name: of the layer.
        pre_norm: whether the norms stand before the sublayers, or after the residual connections.
    """

    def __init__(self, sizes: LayerSizes, weights: Weights, name: str, pre_norm: bool) -> None:
        width, bias = sizes.width, sizes.bias
        self._weights, self._name, self._width, self._bias = weights, name, width, bias
        self._heads = sizes.num_heads
        self._pre_norm = pre_norm
        self._query_key_value = self._linear("self_attention.query_key_value", width, 3 * width)
        self._output = self._linear("self_attention.output", width, width)
        self._expand = self._linear("feed_forward.expand", width, sizes.inner_width)
        self._contract = self._linear("feed_forward.contract", sizes.inner_width, width)
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


class _EncoderLayer(Layer):
    """Self-attention and feed-forward over the source."""

    def __init__(self, config: TransformerConfig, weights: Weights, name: str) -> None:
        super().__init__(config, weights, name, config.norm == "pre")

    def __call__(self, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Maps [B, S, D] to [B, S, D]; ``mask`` is additive [B, 1, 1, S]."""

        def self_attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y)  # [B, S, 3D]
            width = y.shape[-1]
            query, key, value = (fused[..., part * width : (part + 1) * width] for part in range(3))
            return self._output(attend(query, key, value, mask, self._heads)[0])  # [B, S, D]

        x = self._residual(x, self._self_norm, self_attention)
        return self._residual(x, self._feed_forward_norm, self._feed_forward)


class _DecoderLayer(Layer):
    """One position of the target; its keys and values are parts ``part`` and ``part + 1`` of the state's arrays."""

    def __init__(self, config: TransformerConfig, weights: Weights, name: str, part: int) -> None:
        super().__init__(config, weights, name, config.norm == "pre")
        width = config.width
        self._part = part
        self._query = self._linear("cross_attention.query", width, width)
        self._key_value = self._linear("cross_attention.key_value", width, 2 * width)
        self._cross_output = self._linear("cross_attention.output", width, width)
        self._cross_norm = LayerNorm(weights, f"{name}.cross_attention_norm", width)

        # [heads, D, d] and [heads, d, D]
        self._of_query = self._query.weight.reshape(width, self._heads, -1).swapaxes(0, 1)
        self._to_output = self._cross_output.weight.reshape(self._heads, -1, width)

    def prepare(self, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Keys and values of the encoded source [B, S, D].

        For a single short source the products with the projections of queries and outputs are made here, once:
        q W kᵀ = q (k Wᵀ)ᵀ. This spares every step two of its six products. (The large product of a batch is faster
        than a small one for each of its sources.)

        Returns:
            [B, S, D] each, or [B, heads * S, D] each.
        """
        batch, length, width = source.shape
        fused = self._key_value(source)  # [B, S, 2D]
        key, value = fused[..., :width], fused[..., width:]  # [B, S, D]
        if self._bias or self._heads == 1 or batch > 1 or length > SHORT:
            return key, value
        key, value = (part.reshape(batch, length, self._heads, -1).swapaxes(1, 2) for part in (key, value))
        key = np.matmul(key, self._of_query.swapaxes(1, 2)) * np.float32(key.shape[-1] ** -0.5)
        value = np.matmul(value, self._to_output)  # [B, heads, S, D]
        return key.reshape(batch, -1, width), value.reshape(batch, -1, width)

    def __call__(self, x: np.ndarray, state: DecoderState) -> tuple[np.ndarray, np.ndarray]:
        """Maps [N, D] at the last of ``state.length`` positions to [N, D], and fills the cache there.

        Returns:
            The output, and the weights [B, heads, R, S] of the attention over the source.
        """
        part, length = self._part, state.length
        weights: np.ndarray

        def self_attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y).reshape(len(y), 3, -1)  # [N, 3, D]
            state.past[:, length - 1, part : part + 2] = fused[:, 1:]
            key, value = (state.past[:, :length, part + k] for k in range(2))  # [N, T, D] each
            return self._output(attend(fused[:, :1], key, value, None, self._heads)[0][:, 0])

        def cross_attention(y: np.ndarray) -> np.ndarray:
            nonlocal weights
            key, value = (state.memory[:, :, part + k] for k in range(2))  # [B, P, D] each
            if key.shape[1] > state.mask.shape[-1]:
                scores = np.matmul(state.rows.spread(y), key.swapaxes(1, 2))  # [B, R, heads * S]
                weights = scores.reshape(*scores.shape[:2], self._heads, -1)  # [B, R, heads, S]
                weights = softmax(np.add(weights, state.mask, out=weights)).swapaxes(1, 2)
                return state.rows.collect(np.matmul(scores, value))  # [N, D]
            query = state.rows.spread(self._query(y))  # [B, R, D]
            context, weights = attend(query, key, value, state.mask, self._heads)  # [B, R, D]
            return self._cross_output(state.rows.collect(context))

        x = self._residual(x, self._self_norm, self_attention)
        x = self._residual(x, self._cross_norm, cross_attention)
        return self._residual(x, self._feed_forward_norm, self._feed_forward), weights


def attend(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None, heads: int
) -> tuple[np.ndarray, np.ndarray]:
    """softmax(q kᵀ / sqrt(d) + mask) v for all heads (Vaswani et al. 2017, equation 1).

    Args:
        query: [N, T, D].
        key: [N, S, D].
        value: [N, S, D].
        mask: additive [N, 1, 1, S], or None.
        heads: D = heads * d.

    Returns:
        Context [N, T, D] and the weights [N, heads, T, S].
    """
    rows, length, width = query.shape
    size = width // heads
    query, key, value = (
        part.reshape(rows, -1, heads, size).swapaxes(1, 2) for part in (query, key, value)
    )  # [N, heads, ·, d]
    scores = np.matmul(query * np.float32(size**-0.5), key.swapaxes(2, 3))  # [N, heads, T, S]
    if mask is not None:
        scores += mask
    weights = softmax(scores)
    context = np.matmul(weights, value)  # [N, heads, T, d]
    return context.swapaxes(1, 2).reshape(rows, length, width), weights
