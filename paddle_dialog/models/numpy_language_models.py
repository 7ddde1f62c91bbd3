"""The language models in decoding on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from paddle_dialog.config.models import CausalLmConfig, RecurrentLmConfig
from paddle_dialog.models.numpy_causal_transformer import NumpyCausalTransformer
from paddle_dialog.models.numpy_lstm_attention import CellWeights, lstm_step
from paddle_dialog.models.numpy_operators import NumpyLinear, Weights, without_padding
from paddle_dialog.models.numpy_state import AttentionCache


class NumpyCausalLm:
    """Offers `StepModel` over arrays, with the numbers of `CausalLm`.

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


class NumpyRecurrentLmState(NamedTuple):
    """Hidden states and cells of each layer, [N, H] each."""

    hidden: list[np.ndarray]
    cell: list[np.ndarray]


class NumpyRecurrentLm:
    """Offers `StepModel` over arrays, with the numbers of `RecurrentLm`.

    Args:
        vocab_size: V.
        arrays: weights of the network by structured name.

    Raises:
        UnsupportedModelError: a weight is missing or has another shape.
    """

    uses_arrays = True

    def __init__(self, config: RecurrentLmConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        weights, width = Weights(arrays), config.width
        table = weights.take("embedding.table.weight", vocab_size, width)
        self._table, self._width = without_padding(table), width
        self._cells = [
            CellWeights.named(weights, f"layers.{n}", "_l0", width, width).joined()
            for n in range(config.num_layers)
        ]
        self._output = NumpyLinear(table.T, weights.take("output.bias", vocab_size))
        weights.check_all_taken()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> NumpyRecurrentLmState:
        """Return the state before the begin token, after what stands before it: ids [B, S] of the lengths [B]."""
        zeros = [np.zeros((len(source), self._width), dtype=np.float32) for _ in self._cells]
        state = NumpyRecurrentLmState(zeros, zeros)
        for place in range(source.shape[1]):
            goes_on = (place < lengths)[:, None]  # [B, 1]
            _, after = self._advance(source[:, place], state)
            state = NumpyRecurrentLmState(
                *([np.where(goes_on, *pair) for pair in zip(*parts, strict=True)]
                  for parts in zip(after, state, strict=True))
            )  # fmt: skip
        return state

    def step(
        self, token: np.ndarray, state: NumpyRecurrentLmState
    ) -> tuple[np.ndarray, NumpyRecurrentLmState]:
        """Return logits [N, V] after one more token [N], and the new state."""
        x, state = self._advance(token, state)
        return self._output(x), state

    def reorder(self, state: NumpyRecurrentLmState, index: np.ndarray) -> NumpyRecurrentLmState:
        """Return the state of the rows `index` [M]."""
        return NumpyRecurrentLmState(*([part[index] for part in parts] for parts in state))

    def _advance(
        self, token: np.ndarray, state: NumpyRecurrentLmState
    ) -> tuple[np.ndarray, NumpyRecurrentLmState]:
        x = self._table[token]  # [N, H]
        hidden, cells = [], []
        for linear, h, c in zip(self._cells, *state, strict=True):
            x, c = lstm_step(linear(np.concatenate([x, h], axis=1)), c)  # [N, H]
            hidden.append(x)
            cells.append(c)
        return x, NumpyRecurrentLmState(hidden, cells)
