"""`Seq2Seq` over arrays, which answers on the CPU without Paddle."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paddle_dialog.config.models import ModelConfig
from paddle_dialog.models.arrays.embeddings import Embeddings
from paddle_dialog.models.arrays.operators import Weights
from paddle_dialog.models.arrays.pair import DecoderState
from paddle_dialog.models.numpy_families import numpy_pair
from paddle_dialog.models.older_names import SEQ2SEQ_NAMES, with_present_names


class NumpySeq2Seq:
    """Offers `StepModel` over arrays, with the numbers of `Seq2Seq`.

    Args:
        config: of the network.
        vocab_size: V.
        arrays: its weights by structured name.

    Raises:
        NotServed: the family has no steps over arrays for these settings, or the weights are not the config's.
    """

    uses_arrays = True

    def __init__(self, config: ModelConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        weights = Weights(with_present_names(arrays, SEQ2SEQ_NAMES))
        self._encoder, self._decoder = numpy_pair(config, weights)
        tables = Embeddings(config, vocab_size, weights, "source_embedding", "output")
        self._source = tables.source * tables.factor  # [V, E]
        target = self._source if tables.target is tables.source else tables.target * tables.factor
        self._inputs = self._decoder.inputs(target)  # [V, K]
        self._output = tables.output
        weights.check_all_taken()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> DecoderState:
        """Return the state before the first target token, for a source [B, S] of the given lengths [B]."""
        outputs, final = self._encoder.read(self._source[source], lengths)  # [B, S, H]
        state: DecoderState = self._decoder.prepare(outputs, final, lengths)
        return state

    def step(self, token: np.ndarray, state: DecoderState) -> tuple[np.ndarray, DecoderState]:
        """Return logits [N, V] after one more token [N], and the new state."""
        hidden, _, state = self._decoder.step(self._inputs[token], state)  # [N, width]
        return self._output(hidden), state

    def reorder(self, state: DecoderState, index: np.ndarray) -> DecoderState:
        """Return the state of the rows `index` [M]."""
        return state.reorder(index)[0]

    def reorder_within(self, state: DecoderState, index: np.ndarray) -> DecoderState:
        """Reorder rows that stay with their source."""
        return state.reorder_within(index)
