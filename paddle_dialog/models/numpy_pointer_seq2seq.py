"""`PointerSeq2Seq` over arrays, which answers on the CPU without Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from paddle_dialog.config.models import ModelConfig
from paddle_dialog.models.families import numpy_pair
from paddle_dialog.models.numpy_operators import Embeddings, NumpyLinear, Weights
from paddle_dialog.models.numpy_pointer_generator import NumpyPointer, same_words
from paddle_dialog.models.numpy_state import DecoderState
from paddle_dialog.text.vocabulary import Vocabulary


class NumpyPointerState(NamedTuple):
    """The state of a decoding step."""

    past: DecoderState
    copy_ids: np.ndarray  # extended ids of the source [B, S]
    same: np.ndarray  # which of them are the same token [B, S, S]
    extra: int  # ids beyond the vocabulary


class NumpyPointerSeq2Seq:
    """Offers `StepModel` over arrays, with the numbers of `PointerSeq2Seq`.

    Args:
        config: of the network.
        vocab_size: V.
        arrays: its weights by structured name.

    Raises:
        UnsupportedModelError: the family has no NumPy steps for these settings, or the weights are not the config's.
    """

    uses_arrays = True
    returns_log_probabilities = True

    def __init__(self, config: ModelConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        weights = Weights(arrays)
        self._size = vocab_size
        self._encoder, self._decoder = numpy_pair(config, weights)
        self._tables = Embeddings(config, vocab_size, weights, "embedding", "generator.output")
        self._pointer = NumpyPointer(NumpyLinear.named(weights, "generator.gate", config.width, 1))
        weights.check_all_taken()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> NumpyPointerState:
        """Return the state before the first token, for sources [B, S] of the given lengths [B]."""
        outputs, final = self._encoder.read(self._embed(source, self._tables.source), lengths)  # [B, S, H]
        past = self._decoder.prepare(outputs, final, lengths)
        extra = max(int(source.max()) + 1 - self._size, 0)
        return NumpyPointerState(past, source, same_words(source), extra)

    def step(self, token: np.ndarray, state: NumpyPointerState) -> tuple[np.ndarray, NumpyPointerState]:
        """Return log-probabilities [N, V + X] after one more token [N], and the new state."""
        rows = state.past.rows
        hidden, attention, past = self._append(token, state)  # [N, width], [B, R, S]
        weights = rows.collect(np.matmul(attention, state.same))  # [N, S]
        copy_ids = state.copy_ids[rows.inputs]  # [N, S]
        scores = self._pointer(hidden, self._tables.output(hidden), weights, copy_ids, state.extra)
        return scores, state._replace(past=past)

    def reorder(self, state: NumpyPointerState, index: np.ndarray) -> NumpyPointerState:
        """Return the state of the rows `index` [M]."""
        past, left = state.past.reorder(index)
        if left is None:
            return state._replace(past=past)
        return NumpyPointerState(past, state.copy_ids[left], state.same[left], state.extra)

    def reorder_within(self, state: NumpyPointerState, index: np.ndarray) -> NumpyPointerState:
        """Reorder rows that stay with their sources, which need not move."""
        return state._replace(past=state.past.reorder_within(index))

    def attention_weights(self, source: np.ndarray, lengths: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the attention [B, T, S] of each target position [B, T] over the source."""
        state, weights = self.encode(source, lengths), []
        for place in range(target.shape[1]):
            _, attention, past = self._append(target[:, place], state)  # [B, 1, S]
            state = state._replace(past=past)
            weights.append(attention[:, 0])  # [B, S]
        return np.stack(weights, axis=1)

    def _append(
        self, token: np.ndarray, state: NumpyPointerState
    ) -> tuple[np.ndarray, np.ndarray, DecoderState]:
        """Append one more token [N] to every row, see `NumpyDecoder.step`."""
        return self._decoder.step(self._decoder.inputs(self._embed(token, self._tables.target)), state.past)

    def _embed(self, ids: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Embed extended ids [...] as [..., E]; those beyond the vocabulary are read as unknown."""
        known = np.where(ids < self._size, ids, Vocabulary.unk_id)
        embedded: np.ndarray = table[known] * self._tables.factor
        return embedded
