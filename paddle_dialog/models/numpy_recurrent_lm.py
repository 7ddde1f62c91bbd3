"""The recurrent language model over arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from paddle_dialog.config.models import RecurrentLmConfig
from paddle_dialog.models.numpy_lstm_attention import CellWeights, lstm_step
from paddle_dialog.models.numpy_operators import NumpyLinear, Weights, known_choice, without_padding

Step = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of input [N, H] and state [N, P, H], to the new state


class NumpyRecurrentLm:
    """Offers `StepModel` over arrays, with the numbers of `RecurrentLm`; a state is [N, L, P, H].

    Args:
        vocab_size: V.
        arrays: weights of the network by structured name.
    """

    uses_arrays = True

    def __init__(self, config: RecurrentLmConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        known_choice("model.name", config.name, RecurrentLmConfig.name)
        known_choice("model.cell", config.cell, "lstm", "gru")
        weights, width = Weights(arrays), config.width
        table = weights.take("embedding.table.weight", vocab_size, width)
        self._table = without_padding(table)
        make = _lstm if config.cell == "lstm" else _gru
        self._layers = [make(weights, f"_l{layer}", width) for layer in range(config.num_layers)]
        self._state = config.num_layers, 2 if config.cell == "lstm" else 1, width
        self._output = NumpyLinear(table.T, weights.take("output.bias", vocab_size))
        weights.check_all_taken()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the state before the begin token, after the ids [B, S] that precede it, of lengths [B]."""
        state = np.zeros((len(source), *self._state), dtype=np.float32)
        for place in range(source.shape[1]):
            inside = (place < lengths)[:, None, None, None]
            state = np.where(inside, self._advance(source[:, place], state), state)
        return state

    def step(self, token: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return logits [N, V] after one more token [N], and the new state."""
        state = self._advance(token, state)
        return self._output(state[:, -1, 0]), state

    def reorder(self, state: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return the state of the rows `index` [M]."""
        return state[index]

    reorder_within = reorder  # nothing of a state belongs to the input alone

    def _advance(self, token: np.ndarray, state: np.ndarray) -> np.ndarray:
        x, after = self._table[token], []  # [N, H]
        for number, layer in enumerate(self._layers):
            after.append(layer(x, state[:, number]))  # [N, P, H]
            x = after[-1][:, 0]
        return np.stack(after, axis=1)


def _lstm(weights: Weights, suffix: str, width: int) -> Step:
    gates = CellWeights.named(weights, "rnn", suffix, width, width).joined()

    def step(x: np.ndarray, state: np.ndarray) -> np.ndarray:
        return np.stack(lstm_step(gates(np.concatenate([x, state[:, 0]], axis=1)), state[:, 1]), axis=1)

    return step


def _gru(weights: Weights, suffix: str, width: int) -> Step:
    """Return a step of a GRU (Cho et al. 2014) whose reset gate acts after the product, as Paddle's does."""
    of_input, of_hidden = (
        NumpyLinear(
            weights.take(f"rnn.weight_{part}{suffix}", 3 * width, width).T,
            weights.take(f"rnn.bias_{part}{suffix}", 3 * width),
        )
        for part in ("ih", "hh")
    )

    def step(x: np.ndarray, state: np.ndarray) -> np.ndarray:
        hidden = state[:, 0]  # [N, H]
        reset_in, update_in, new_in = np.split(of_input(x), 3, axis=1)  # [N, H] each
        reset, update, new = np.split(of_hidden(hidden), 3, axis=1)
        keep = _sigmoid(update_in + update)
        candidate = np.tanh(new_in + _sigmoid(reset_in + reset) * new)
        return (keep * hidden + (1 - keep) * candidate)[:, None]

    return step


def _sigmoid(x: np.ndarray) -> np.ndarray:
    half = np.float32(0.5)
    result: np.ndarray = half * np.tanh(half * x) + half
    return result
