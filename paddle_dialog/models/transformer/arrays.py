"""The Transformer's pair over arrays: the encoder reads whole sources, the decoder goes position by position."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.layers.sinusoids import sinusoids
from paddle_dialog.models.arrays.attention_cache import AttentionCache
from paddle_dialog.models.arrays.operators import NumpyLayerNorm, NumpyLinear, Weights, padding_mask
from paddle_dialog.models.arrays.pair import NumpyDecoder, NumpyEncoder
from paddle_dialog.models.arrays.row_inputs import RowInputs
from paddle_dialog.models.transformer.array_layers import NumpyDecoderLayer, NumpyEncoderLayer, require_relu


class NumpyTransformerEncoder:
    """The numbers of `TransformerEncoder` with ReLU."""

    def __init__(self, config: TransformerConfig, weights: Weights) -> None:
        self.output_size = config.width
        self._positions = _positions(config, weights, "encoder.positions")
        self._layers = [
            NumpyEncoderLayer(config, weights, f"encoder.stack.layers.{n}")
            for n in range(config.encoder_layers)
        ]
        self._norm = _final_norm(config, weights, "encoder.stack")

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, None]:
        """Encode; see `NumpyEncoder`."""
        length = embedded.shape[1]
        x = embedded + self._positions[:length]  # [B, S, D]
        mask = padding_mask(lengths, length)[:, None, None]  # [B, 1, 1, S]
        for layer in self._layers:
            x = layer(x, mask)  # [B, S, D]
        return x if self._norm is None else self._norm(x), None


class TransformerState(NamedTuple):
    """The state of a decoding step."""

    cache: AttentionCache
    aligned: np.ndarray | None  # added to the decoder's input position by position [B, S, D]

    @property
    def rows(self) -> RowInputs:
        """N rows of B sources."""
        return self.cache.rows

    def reorder(self, index: np.ndarray) -> tuple[TransformerState, np.ndarray | None]:
        """See `DecoderState`."""
        cache, left = self.cache.reorder(index)
        aligned = self.aligned if self.aligned is None or left is None else self.aligned[left]
        return TransformerState(cache, aligned), left

    def reorder_within(self, index: np.ndarray) -> TransformerState:
        """See `DecoderState`."""
        return self._replace(cache=self.cache.reorder_within(index))


class NumpyTransformerDecoder:
    """The numbers of `TransformerDecoder` with ReLU."""

    def __init__(self, config: TransformerConfig, weights: Weights) -> None:
        width = config.width
        self._positions = _positions(config, weights, "decoder.positions")
        self._layers = [
            NumpyDecoderLayer(config, weights, f"decoder.stack.layers.{n}", 2 * n)
            for n in range(config.decoder_layers)
        ]
        self._norm = _final_norm(config, weights, "decoder.stack")
        self._aligned = None
        if config.aligned_input:
            self._aligned = NumpyLinear.named(weights, "decoder.aligned_projection", width, width, bias=False)

    def inputs(self, embedded: np.ndarray) -> np.ndarray:
        """Return the embedded tokens themselves."""
        return embedded

    def prepare(self, outputs: np.ndarray, final: None, lengths: np.ndarray) -> TransformerState:
        """Return each layer's keys and values of the source."""
        length = outputs.shape[1]
        aligned = None
        if self._aligned is not None:
            aligned = self._aligned(outputs) * (np.arange(length) < lengths[:, None])[..., None]  # [B, S, D]
        memory = np.stack([part for layer in self._layers for part in layer.prepare(outputs)], axis=2)
        return TransformerState(
            AttentionCache.of(memory, lengths, length), aligned
        )  # memory is [B, P, 2L, D]

    def step(
        self, inputs: np.ndarray, state: TransformerState
    ) -> tuple[np.ndarray, np.ndarray, TransformerState]:
        """Decode one more position of every row; see `NumpyDecoder`; the attention is the last layer's."""
        place, cache = state.cache.length, state.cache.with_one_more()
        x = inputs + self._positions[place]  # [N, D]
        if state.aligned is not None and place < state.aligned.shape[1]:
            x += state.aligned[cache.rows.inputs, place]
        for layer in self._layers:
            x, weights = layer(x, cache)  # [N, D], [B, heads, R, S]
        hidden = x if self._norm is None else self._norm(x)
        return hidden, weights.mean(axis=1), state._replace(cache=cache)

    def read_targets(self, inputs: np.ndarray, source: np.ndarray, owners: np.ndarray) -> np.ndarray:
        """Decode all positions of whole targets; see `NumpyTargetReader`."""
        length, count = inputs.shape[1], len(source)
        apart = None if count == 1 or np.array_equal(owners, np.arange(count)) else owners
        x = inputs + self._positions[:length]  # [M, T, D]
        if self._aligned is not None:
            aligned = self._aligned(source[:, :length])  # [B, at most T, D]
            x[:, : source.shape[1]] += aligned if apart is None else aligned[apart]
        mask = padding_mask(np.arange(1, length + 1), length)  # [T, T]
        for layer in self._layers:
            x = layer.read_targets(x, source, apart, mask)  # [M, T, D]
        return x if self._norm is None else self._norm(x)


def _positions(config: TransformerConfig, weights: Weights, name: str) -> np.ndarray:
    """Return the vectors of all positions [max_positions, D]."""
    if config.positions == "sinusoidal":
        return sinusoids(max_length=config.max_positions, width=config.width)
    return weights.take(f"{name}.weight", config.max_positions, config.width)


def _final_norm(config: TransformerConfig, weights: Weights, name: str) -> NumpyLayerNorm | None:
    return NumpyLayerNorm(weights, f"{name}.final_norm", config.width) if config.norm == "pre" else None


def numpy_transformer_pair(config: TransformerConfig, weights: Weights) -> tuple[NumpyEncoder, NumpyDecoder]:
    """Build encoder and decoder.

    Raises:
        UnsupportedModelError: its activation is not ReLU, or a weight is missing or has another shape.
    """
    require_relu(config)
    return NumpyTransformerEncoder(config, weights), NumpyTransformerDecoder(config, weights)
