"""The Transformer family in decoding on the CPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.numpy_models.decoder_state import DecoderState
from paddle_dialog.numpy_models.operators import Linear, Weights, without_padding
from paddle_dialog.numpy_models.transformer_layers import DecoderStack, EncoderStack, position_vectors


class TransformerState(NamedTuple):
    """What a decoding step needs."""

    decoder: DecoderState
    aligned: np.ndarray | None  # added to the decoder's input position by position [B, S, D]


class NumpyTransformer:
    """Offers ``StepModel`` over arrays, with the numbers of ``Transformer`` with ReLU.

    A step writes into the cache of the state it is given, which is of no use afterwards.

    Args:
        config: of the network.
        vocab_size: V.
        weights: of the network.

    Raises:
        NotServed: a weight is missing or has another shape.
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
        self._source_positions = position_vectors(config, weights, "encoder.positions.weight")
        self._target_positions = position_vectors(config, weights, "decoder.positions.weight")
        self._encoder = EncoderStack(config, weights, "encoder.stack")
        self._decoder = DecoderStack(config, weights, "decoder.stack")
        self._aligned = None
        if config.aligned_input:
            self._aligned = Linear.named(weights, "decoder.aligned_projection", width, width, bias=False)
        self._output = (
            Linear(target.T, weights.take("output.bias", vocab_size) if config.bias else None)
            if config.tie_output
            else Linear.named(weights, "output", width, vocab_size, config.bias)
        )

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> TransformerState:
        """The state before the first target token, for a source [B, S] of the given lengths [B]."""
        length = source.shape[1]
        embedded = self._source_table[source] * self._factor + self._source_positions[:length]  # [B, S, D]
        encoded = self._encoder(embedded, lengths)  # [B, S, D]
        aligned = None
        if self._aligned is not None:
            aligned = self._aligned(encoded) * (np.arange(length) < lengths[:, None])[..., None]  # [B, S, D]
        return TransformerState(self._decoder.prepare(encoded, lengths), aligned)

    def step(self, token: np.ndarray, state: TransformerState) -> tuple[np.ndarray, TransformerState]:
        """Logits [N, V] after one more token [N], and the new state."""
        place = state.decoder.length
        x = self._target_table[token] * self._factor + self._target_positions[place]  # [N, D]
        if state.aligned is not None and place < state.aligned.shape[1]:
            x += state.aligned[state.decoder.rows.inputs, place]
        x, _, decoder = self._decoder(x, state.decoder)  # [N, D]
        return self._output(x), state._replace(decoder=decoder)

    def reorder(self, state: TransformerState, index: np.ndarray) -> TransformerState:
        """The state of the rows ``index`` [M]."""
        decoder, left = state.decoder.reorder(index)
        aligned = state.aligned if state.aligned is None or left is None else state.aligned[left]
        return TransformerState(decoder, aligned)

    def reorder_within(self, state: TransformerState, index: np.ndarray) -> TransformerState:
        """``reorder`` for rows that stay with their input: what belongs to the source is not copied."""
        return state._replace(decoder=state.decoder.reorder_within(index))
