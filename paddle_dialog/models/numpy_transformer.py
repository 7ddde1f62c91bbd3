"""The Transformer in NumPy: the encoder reads whole sources, the decoder goes position by position."""

from __future__ import annotations

import numpy as np

from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.layers.sinusoids import sinusoids
from paddle_dialog.models.numpy_layers import (
    AttentionCache,
    NumpyDecoder,
    NumpyEncoder,
    NumpyTransformerLayer,
)
from paddle_dialog.models.numpy_operators import (
    NumpyLayerNorm,
    NumpyLinear,
    Weights,
    attend,
    causal_mask,
    padding_mask,
    require_supported,
)


class NumpyEncoderLayer(NumpyTransformerLayer):
    """Self-attention and feed-forward over the source."""

    def __call__(self, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Map [B, S, D] to [B, S, D]; `mask` is additive [B, 1, 1, S]."""
        return self._feed_forward(self._attend_to_itself(x, mask)[0])


class NumpyDecoderLayer(NumpyTransformerLayer):
    """One position of the target; its keys and values are parts `part` and `part + 1` of the cache."""

    def __init__(self, config: TransformerConfig, weights: Weights, name: str, part: int) -> None:
        super().__init__(config, weights, name)
        width = config.width
        self._part = part
        self._query = self._linear("cross_attention.query", width, width)
        self._key_value = self._linear("cross_attention.key_value", width, 2 * width)
        self._cross_output = self._linear("cross_attention.output", width, width)
        self._cross_norm = NumpyLayerNorm(weights, f"{name}.cross_attention_norm", width)

    def prepare(self, source: np.ndarray) -> np.ndarray:
        """Return keys and values [B, S, 2, D] of the encoded source [B, S, D]."""
        return self._key_value(source).reshape(*source.shape[:2], 2, -1)

    def __call__(self, x: np.ndarray, cache: AttentionCache) -> tuple[np.ndarray, np.ndarray]:
        """Map [N, D] at the last of `cache.length` positions to [N, D], and fill the cache there.

        Returns:
            The output, and the weights [B, heads, R, S] of the attention over the source.
        """
        part, length = self._part, cache.length
        fused = self._query_key_value(self._self_norm(x)).reshape(len(x), 3, -1)  # [N, 3, D]
        cache.past[:, length - 1, part : part + 2] = fused[:, 1:]
        key, value = (cache.past[:, :length, part + k] for k in range(2))  # [N, T, D] each
        x = x + self._output(attend(fused[:, :1], key, value, None, self._heads)[0][:, 0])
        query = cache.rows.scatter(self._query(self._cross_norm(x)))  # [B, R, D]
        key, value = (cache.memory[:, :, part + k] for k in range(2))  # [B, S, D] each
        context, weights = attend(query, key, value, cache.mask, self._heads)  # [B, R, D]
        x += self._cross_output(cache.rows.gather(context))
        return self._feed_forward(x), weights

    def read_targets(
        self, x: np.ndarray, source: np.ndarray, owners: np.ndarray | None, mask: np.ndarray
    ) -> np.ndarray:
        """Map whole targets [M, T, D] to [M, T, D].

        Args:
            source: encoded, without padding [B, S, D].
            owners: the source of each target [M]; None where there is one source, or one for each target in order.
            mask: additive [T, T].
        """
        width = self._width
        x, _ = self._attend_to_itself(x, mask)
        fused = self._key_value(source)  # [B, S, 2D]
        fused = fused if owners is None else fused[owners]  # [M, S, 2D], or [1, S, 2D]
        query = self._query(self._cross_norm(x)).reshape(len(fused), -1, width)  # [M, T, D], or [1, M * T, D]
        context, _ = attend(query, fused[..., :width], fused[..., width:], None, self._heads)
        return self._feed_forward(x + self._cross_output(context.reshape(x.shape)))


class NumpyTransformerEncoder(NumpyEncoder):
    """`TransformerEncoder` in NumPy, with the same results, in the form of this family."""

    def __init__(self, config: TransformerConfig, weights: Weights) -> None:
        require_supported("model.feed_forward", config.feed_forward, "ll")
        require_supported("model.project_embeddings", config.project_embeddings, False)
        for key in ("key_size", "value_size"):
            require_supported(f"model.{key}", getattr(config, key), None, config.width)
        self.output_size = config.width
        self.positions = sinusoids(max_length=config.max_positions, width=config.width)  # [positions, D]
        self._layers = [
            NumpyEncoderLayer(config, weights, f"encoder.stack.layers.{n}")
            for n in range(config.encoder_layers)
        ]
        self._norm = NumpyLayerNorm(weights, "encoder.stack.final_norm", config.width)

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, None]:
        """Read embedded sources; the decoder needs the outputs alone."""
        length = embedded.shape[1]
        x = embedded + self.positions[:length]  # [B, S, D]
        mask = padding_mask(lengths, length)[:, None, None]  # [B, 1, 1, S]
        for layer in self._layers:
            x = layer(x, mask)  # [B, S, D]
        return self._norm(x), None


class NumpyTransformerDecoder(NumpyDecoder):
    """`TransformerDecoder` in NumPy, with the same results."""

    def __init__(self, config: TransformerConfig, weights: Weights, encoder: NumpyTransformerEncoder) -> None:
        width = config.width
        self._positions = encoder.positions
        self._layers = [
            NumpyDecoderLayer(config, weights, f"decoder.stack.layers.{n}", 2 * n)
            for n in range(config.decoder_layers)
        ]
        self._norm = NumpyLayerNorm(weights, "decoder.stack.final_norm", config.width)
        self._aligned = None
        if config.aligned_input:
            self._aligned = NumpyLinear.named(weights, "decoder.aligned_projection", width, width, bias=False)

    def prepare(self, outputs: np.ndarray, final: None, lengths: np.ndarray) -> AttentionCache:
        """Return each layer's keys and values of the source."""
        length = outputs.shape[1]
        sources = []
        if self._aligned is not None:  # added to the decoder's input position by position [B, S, D]
            sources = [self._aligned(outputs) * (np.arange(length) < lengths[:, None])[..., None]]
        memory = np.concatenate([layer.prepare(outputs) for layer in self._layers], axis=2)
        return AttentionCache.of(memory, lengths, *sources)  # memory is [B, S, 2L, D]

    def step(
        self, embedded: np.ndarray, state: AttentionCache
    ) -> tuple[np.ndarray, np.ndarray, AttentionCache]:
        """Decode one more position of every row; the attention is the last layer's."""
        place, cache = state.length, state.with_one_more()
        x = embedded + self._positions[place]  # [N, D]
        for aligned in cache.sources:
            if place < aligned.shape[1]:
                x += aligned[cache.rows.inputs, place]
        for layer in self._layers:
            x, weights = layer(x, cache)  # [N, D], [B, heads, R, S]
        return self._norm(x), weights.mean(axis=1), cache

    def read_targets(self, embedded: np.ndarray, source: np.ndarray, owners: np.ndarray) -> np.ndarray:
        """Decode all positions of whole targets at once, which costs less than one after the other.

        Args:
            embedded: the tokens of M targets, the begin token first, without padding [M, T, D].
            source: outputs of the encoder for B sources, without padding [B, S, D].
            owners: the source of each target [M].

        Returns:
            Hidden [M, T, D].
        """
        length, count = embedded.shape[1], len(source)
        apart = None if count == 1 or np.array_equal(owners, np.arange(count)) else owners
        x = embedded + self._positions[:length]  # [M, T, D]
        if self._aligned is not None:
            aligned = self._aligned(source[:, :length])  # [B, at most T, D]
            x[:, : source.shape[1]] += aligned if apart is None else aligned[apart]
        mask = causal_mask(length)  # [T, T]
        for layer in self._layers:
            x = layer.read_targets(x, source, apart, mask)  # [M, T, D]
        return self._norm(x)
