"""The language model in decoding on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paddle_dialog.config.models import CausalLmConfig
from paddle_dialog.models.numpy_causal_transformer import NumpyCausalTransformer
from paddle_dialog.models.numpy_operators import NumpyLinear, Weights, without_padding
from paddle_dialog.models.numpy_seq2seq import log_probs_of_texts
from paddle_dialog.models.numpy_state import AttentionCache
from paddle_dialog.text.vocabulary import Vocabulary


class NumpyCausalLm:
    """Offers `StepModel` and `TextReader` over arrays, with the numbers of `CausalLm`.

    Args:
        vocab_size: V.
        arrays: weights of the network by structured name.

    Raises:
        UnsupportedModelError: a weight is missing or has another shape.
    """

    uses_arrays = True

    def __init__(self, config: CausalLmConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        weights, width = Weights(arrays), config.width
        table = weights.take("embedding.table.weight", vocab_size, width)
        self._table = without_padding(table) * np.float32(width**0.5)
        self._positions = weights.take("positions.weight", config.max_positions, width)
        self._stack = NumpyCausalTransformer(config, weights, "stack")
        self._output = NumpyLinear(table.T, weights.take("output.bias", vocab_size))
        weights.check_all_taken()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> AttentionCache:
        """Return the state before the begin token, after what stands before it: ids [B, S] of the lengths [B]."""
        places = np.arange(source.shape[1]) - lengths[:, None]  # [B, S], negative
        x = self._table[source] + self._positions[places % len(self._positions)]  # [B, S, D]
        return AttentionCache.of(self._stack.read(x)[1], lengths)

    def step(self, token: np.ndarray, state: AttentionCache) -> tuple[np.ndarray, AttentionCache]:
        """Return logits [N, V] after one more token [N], and the new state."""
        x, state = self._stack.step(self._table[token] + self._positions[state.length], state)  # [N, D]
        return self._output(x), state

    def reorder(self, state: AttentionCache, index: np.ndarray) -> AttentionCache:
        """Return the state of the rows `index` [M]."""
        return state.reorder(index)[0]

    def reorder_within(self, state: AttentionCache, index: np.ndarray) -> AttentionCache:
        """Reorder rows that stay with their input."""
        return state.reorder_within(index)

    def text_states(
        self, source: np.ndarray, lengths: np.ndarray, texts: Sequence[Sequence[int]], inputs: np.ndarray
    ) -> list[np.ndarray]:
        """See `TextReader`; the texts of one input are read together."""
        states = [np.empty((0, 0), dtype=np.float32)] * len(texts)
        for row in np.unique(inputs).tolist():
            together, before = np.flatnonzero(inputs == row).tolist(), source[row, : lengths[row]].tolist()
            longest = max(len(texts[number]) for number in together)
            tokens = np.full((len(together), len(before) + 1 + longest), Vocabulary.pad_id)  # [m, S + 1 + T]
            for line, number in zip(tokens, together, strict=True):
                given = [*before, Vocabulary.bos_id, *texts[number]]
                line[: len(given)] = given
            places = np.arange(tokens.shape[1]) - len(before)
            hidden, _ = self._stack.read(self._table[tokens] + self._positions[places])  # [m, S + 1 + T, D]
            for number, outputs in zip(together, hidden[:, len(before) :], strict=True):
                states[number] = outputs[: len(texts[number]) + 1]
        return states

    def state_log_probs(self, states: Sequence[np.ndarray], texts: Sequence[Sequence[int]]) -> np.ndarray:
        """See `TextReader`."""
        return log_probs_of_texts(self._output, states, texts)
