"""`PointerSeq2Seq` over arrays, which answers on the CPU without Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.config.models import FamilyConfig
from paddle_dialog.models.families import numpy_pair
from paddle_dialog.models.numpy_operators import Embeddings, NumpyLinear, Weights
from paddle_dialog.models.numpy_pointer_generator import NumpyPointer, same_words
from paddle_dialog.models.numpy_state import DecoderState
from paddle_dialog.text.vocabulary import Vocabulary


class NumpyPointerState(NamedTuple):
    """The state of a decoding step."""

    past: DecoderState
    begin: np.ndarray | None  # takes the place of the begin token's embedding [B, E]
    copy_ids: np.ndarray  # extended ids of the source [B, S]
    same: np.ndarray  # which of them are the same token [B, S, S]
    extra: int  # ids beyond the vocabulary


class NumpyPointerSeq2Seq:
    """Offers `StepModel` over arrays, with the numbers of `PointerSeq2Seq`.

    A step writes into the cache of the state it is given, which must not be used afterwards.

    Args:
        config: of the network.
        vocab_size: V.
        weights: of the network; those that are not taken are left to who makes the model.
        has_pointer: see `PointerSeq2Seq`.
        temperature: see `PointerSeq2Seq`.

    Raises:
        UnsupportedModelError: the family has no steps over arrays for these settings, or the weights are not the
            config's.
    """

    uses_arrays = True

    def __init__(
        self,
        config: FamilyConfig,
        vocab_size: int,
        weights: Weights,
        has_pointer: bool = True,
        temperature: float = 1.0,
    ) -> None:
        self._size, self._width = vocab_size, config.width
        self._encoder, self._decoder = numpy_pair(config, weights)
        self._tables = Embeddings(config, vocab_size, weights, "embedding", "generator.output")
        self._temperature = np.float32(temperature)
        self._pointer = None
        if has_pointer:
            self._pointer = NumpyPointer(NumpyLinear.named(weights, "generator.gate", config.width, 1))
        self.returns_log_probabilities = has_pointer

    @classmethod
    def of_arrays(
        cls, config: FamilyConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]
    ) -> NumpyPointerSeq2Seq:
        """Build the model of a network's weights by structured name; errors as above."""
        weights = Weights(arrays)
        model = cls(config, vocab_size, weights)
        weights.check_all_taken()
        return model

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> NumpyPointerState:
        """Return the state before the first token, for sources [B, S] of the given lengths [B]."""
        outputs, final = self._encoder.read(self._embed_source(source), lengths)  # [B, S, H]
        return self._begin(self._decoder.prepare(outputs, final, lengths), source)

    def step(self, token: np.ndarray, state: NumpyPointerState) -> tuple[np.ndarray, NumpyPointerState]:
        """Score after one more token [N]; log-probabilities [N, V + X], logits [N, V] without a pointer."""
        rows = state.past.rows
        hidden, attention, past = self._append(token, state)  # [N, D], [B, R, S]
        state = state._replace(past=past)
        logits = self._tables.output(hidden)  # [N, V]
        if self._temperature != 1.0:
            logits /= self._temperature
        if self._pointer is None:
            return logits, state
        weights = rows.collect(np.matmul(attention, state.same))  # [N, S]
        return self._pointer(hidden, logits, weights, state.copy_ids[rows.inputs], state.extra), state

    def reorder(self, state: NumpyPointerState, index: np.ndarray) -> NumpyPointerState:
        """Return the state of the rows `index` [M]."""
        past, left = state.past.reorder(index)
        if left is None:
            return state._replace(past=past)
        begin = None if state.begin is None else state.begin[left]
        return NumpyPointerState(past, begin, state.copy_ids[left], state.same[left], state.extra)

    def reorder_within(self, state: NumpyPointerState, index: np.ndarray) -> NumpyPointerState:
        """Reorder rows that stay with their sources, which need not move."""
        return state._replace(past=state.past.reorder_within(index))

    def attention_weights(self, source: Any, lengths: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the attention [B, T, S] of each target position [B, T] over the source."""
        state, weights = self.encode(source, lengths), []
        for place in range(target.shape[1]):
            _, attention, past = self._append(target[:, place], state)  # [B, 1, S]
            state = state._replace(past=past)
            weights.append(attention[:, 0])  # [B, S]
        return np.stack(weights, axis=1)

    def _begin(self, past: Any, copy_ids: np.ndarray, begin: np.ndarray | None = None) -> NumpyPointerState:
        """Return the state before the first token; see `PointerSeq2Seq.begin`."""
        extra = max(int(copy_ids.max()) + 1 - self._size, 0)
        return NumpyPointerState(past, begin, copy_ids, same_words(copy_ids), extra)

    def _append(
        self, token: np.ndarray, state: NumpyPointerState
    ) -> tuple[np.ndarray, np.ndarray, DecoderState]:
        """Append one more token [N] to every row, see `NumpyDecoder.step`."""
        embedded = self._embed_target(token, state.begin, state.past.rows.inputs)  # [N, E]
        return self._decoder.step(self._decoder.inputs(embedded), state.past)

    def _embed_source(self, source: np.ndarray) -> np.ndarray:
        """Embed sources [B, S] as [B, S, E]."""
        embedded: np.ndarray = self._tables.source[self._known(source)] * self._tables.factor
        return embedded

    def _embed_target(self, tokens: np.ndarray, begin: np.ndarray | None, inputs: np.ndarray) -> np.ndarray:
        """Embed tokens [N] as [N, E], those of the source `inputs` [N] with its `begin` [B, E] as begin token."""
        embedded: np.ndarray = self._tables.target[self._known(tokens)] * self._tables.factor
        return self._replace_begin(embedded, tokens, begin, inputs)

    def _replace_begin(
        self, embedded: np.ndarray, tokens: np.ndarray, begin: np.ndarray | None, inputs: np.ndarray
    ) -> np.ndarray:
        if begin is not None:
            places = np.flatnonzero(tokens == Vocabulary.bos_id)
            embedded[places] = begin[inputs[places]]
        return embedded

    def _known(self, ids: np.ndarray) -> np.ndarray:
        """Return extended ids of any shape; those beyond the vocabulary become unknown."""
        return np.where(ids < self._size, ids, Vocabulary.unk_id)
