"""Layers of Transformers over arrays, with ReLU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paddle_dialog.config.models import CausalLmConfig, CausalTransformerConfig, TransformerConfig
from paddle_dialog.layers.sizes import LayerSizes
from paddle_dialog.models.arrays.attention_cache import AttentionCache
from paddle_dialog.models.arrays.operators import (
    NumpyLayerNorm,
    NumpyLinear,
    UnsupportedModelError,
    Weights,
    softmax,
)

SHORT = 16  # positions of a source up to which its keys and values absorb the projections


class Layer:
    """The common parts of all layers: self-attention, feed-forward, and a norm of each.

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
        self._self_norm = NumpyLayerNorm(weights, f"{name}.self_attention_norm", width)
        self._feed_forward_norm = NumpyLayerNorm(weights, f"{name}.feed_forward_norm", width)

    def _linear(self, name: str, inputs: int, outputs: int) -> NumpyLinear:
        return NumpyLinear.named(self._weights, f"{self._name}.{name}", inputs, outputs, self._bias)

    def _residual(
        self, x: np.ndarray, norm: NumpyLayerNorm, sublayer: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Add the output of a sublayer to `x` [..., D]."""
        return x + sublayer(norm(x)) if self._pre_norm else norm(x + sublayer(x))

    def _feed_forward(self, x: np.ndarray) -> np.ndarray:
        inner = self._expand(x)  # [..., inner]
        return self._contract(np.maximum(inner, np.float32(0), out=inner))


class NumpyEncoderLayer(Layer):
    """Self-attention and feed-forward over the source."""

    def __init__(self, config: TransformerConfig, weights: Weights, name: str) -> None:
        super().__init__(config, weights, name, config.norm == "pre")

    def __call__(self, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Map [B, S, D] to [B, S, D]; `mask` is additive [B, 1, 1, S]."""

        def self_attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y)  # [B, S, 3D]
            width = y.shape[-1]
            query, key, value = (fused[..., part * width : (part + 1) * width] for part in range(3))
            return self._output(attend(query, key, value, mask, self._heads)[0])  # [B, S, D]

        x = self._residual(x, self._self_norm, self_attention)
        return self._residual(x, self._feed_forward_norm, self._feed_forward)


class NumpyDecoderLayer(Layer):
    """One position of the target; its keys and values are parts `part` and `part + 1` of the cache."""

    def __init__(self, config: TransformerConfig, weights: Weights, name: str, part: int) -> None:
        super().__init__(config, weights, name, config.norm == "pre")
        width = config.width
        self._part = part
        self._query = self._linear("cross_attention.query", width, width)
        self._key_value = self._linear("cross_attention.key_value", width, 2 * width)
        self._cross_output = self._linear("cross_attention.output", width, width)
        self._cross_norm = NumpyLayerNorm(weights, f"{name}.cross_attention_norm", width)

        # [heads, D, d] and [heads, d, D]
        self._of_query = self._query.weight.reshape(width, self._heads, -1).swapaxes(0, 1)
        self._to_output = self._cross_output.weight.reshape(self._heads, -1, width)

    def prepare(self, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return keys and values of the encoded source [B, S, D].

        For a single short source the products with the projections of queries and outputs are made here, once:
        q W kᵀ = q (k Wᵀ)ᵀ. This saves two of the six products of every step. (For a batch, one large product is
        faster than a small one for each source.)

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

    def __call__(self, x: np.ndarray, cache: AttentionCache) -> tuple[np.ndarray, np.ndarray]:
        """Map [N, D] at the last of `cache.length` positions to [N, D], and fill the cache there.

        Returns:
            The output, and the weights [B, heads, R, S] of the attention over the source.
        """
        part, length = self._part, cache.length
        weights: np.ndarray

        def self_attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y).reshape(len(y), 3, -1)  # [N, 3, D]
            cache.past[:, length - 1, part : part + 2] = fused[:, 1:]
            key, value = (cache.past[:, :length, part + k] for k in range(2))  # [N, T, D] each
            return self._output(attend(fused[:, :1], key, value, None, self._heads)[0][:, 0])

        def cross_attention(y: np.ndarray) -> np.ndarray:
            nonlocal weights
            key, value = (cache.memory[:, :, part + k] for k in range(2))  # [B, P, D] each
            if key.shape[1] > cache.mask.shape[-1]:
                scores = np.matmul(cache.rows.spread(y), key.swapaxes(1, 2))  # [B, R, heads * S]
                weights = scores.reshape(*scores.shape[:2], self._heads, -1)  # [B, R, heads, S]
                weights = softmax(np.add(weights, cache.mask, out=weights)).swapaxes(1, 2)
                return cache.rows.collect(np.matmul(scores, value))  # [N, D]
            query = cache.rows.spread(self._query(y))  # [B, R, D]
            context, weights = attend(query, key, value, cache.mask, self._heads)  # [B, R, D]
            return self._cross_output(cache.rows.collect(context))

        x = self._residual(x, self._self_norm, self_attention)
        x = self._residual(x, self._cross_norm, cross_attention)
        return self._residual(x, self._feed_forward_norm, self._feed_forward), weights

    def read_targets(
        self, x: np.ndarray, source: np.ndarray, owners: np.ndarray | None, mask: np.ndarray
    ) -> np.ndarray:
        """Map whole targets [M, T, D] to [M, T, D].

        Args:
            x: at all positions.
            source: encoded, without padding [B, S, D].
            owners: the source of each target [M]; None where there is one source, or one for each target in order.
            mask: additive [T, T].
        """
        width = self._width

        def self_attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y)  # [M, T, 3D]
            query, key, value = (fused[..., part * width : (part + 1) * width] for part in range(3))
            return self._output(attend(query, key, value, mask, self._heads)[0])

        def cross_attention(y: np.ndarray) -> np.ndarray:
            fused = self._key_value(source)  # [B, S, 2D]
            fused = fused if owners is None else fused[owners]  # [M, S, 2D], or [1, S, 2D]
            query = self._query(y).reshape(len(fused), -1, width)  # [M, T, D], or [1, M * T, D]
            context, _ = attend(query, fused[..., :width], fused[..., width:], None, self._heads)
            return self._cross_output(context.reshape(x.shape))

        x = self._residual(x, self._self_norm, self_attention)
        x = self._residual(x, self._cross_norm, cross_attention)
        return self._residual(x, self._feed_forward_norm, self._feed_forward)


def attend(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None, heads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax(q kᵀ / sqrt(d) + mask) v for all heads (Vaswani et al. 2017, equation 1).

    Args:
        query: [N, T, D].
        key: [N, S, D].
        value: [N, S, D].
        mask: additive [N, 1, 1, S] or [T, S], or None.
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


def require_relu(config: TransformerConfig | CausalTransformerConfig | CausalLmConfig) -> None:
    """Check that the activation is ReLU, the only one over arrays.

    Raises:
        UnsupportedModelError: it is not.
    """
    if config.activation != "relu":
        raise UnsupportedModelError(f"activation is {config.activation}")
