"""LSTM layers: the cell of a decoding step, and the encoder over whole sources."""

from __future__ import annotations

import numpy as np

from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.numpy_models.operators import Linear, Weights


def cell_weights(
    weights: Weights, input_name: str, hidden_name: str, input_size: int, hidden_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias of an LSTM cell for `lstm_cell`.

    Args:
        weights: of the network.
        input_name: of the input's weight and bias, with ``{}`` for the words "weight" and "bias".
        hidden_name: the same of the hidden state's.
        input_size: E.
        hidden_size: H.

    Returns:
        [E + H, 4H] and [4H], where what the sigmoids get is halved.
    """
    halves = np.repeat(np.array([0.5, 0.5, 1.0, 0.5], dtype=np.float32), hidden_size)  # of i, f, g, o
    of_input = weights.take(input_name.format("weight"), 4 * hidden_size, input_size)
    of_hidden = weights.take(hidden_name.format("weight"), 4 * hidden_size, hidden_size)
    bias = weights.take(input_name.format("bias"), 4 * hidden_size)
    bias = bias + weights.take(hidden_name.format("bias"), 4 * hidden_size)
    return np.concatenate([of_input, of_hidden], axis=1).T * halves, bias * halves


def lstm_cell(gates: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step of an LSTM (Hochreiter & Schmidhuber 1997) after its products.

    A single tanh serves all gates, since sigmoid(x) = (1 + tanh(x / 2)) / 2.

    Args:
        gates: pre-activations of i, f, g, o with the sigmoids' halved, [N, 4H]; overwritten.
        memory: of the step before, [N, H].

    Returns:
        Hidden state and memory, [N, H] each.
    """
    one, half, size = np.float32(1), np.float32(0.5), memory.shape[1]
    np.tanh(gates, out=gates)
    take, keep, new, out = (gates[:, part * size : (part + 1) * size] for part in range(4))  # [N, H] each
    memory = ((take + one) * new + (keep + one) * memory) * half
    return (out + one) * half * np.tanh(memory), memory


class Encoder:
    """``RecurrentEncoder`` of LSTM cells with the ``StateBridge`` behind it.

    Args:
        config: of the network.
        weights: of the network.
    """

    def __init__(self, config: LstmAttentionConfig, weights: Weights) -> None:
        hidden = self._hidden_size = config.hidden_size
        directions = ["", "_reverse"] if config.bidirectional else [""]
        self.output_size = hidden * len(directions)
        self._layers: list[
            list[tuple[Linear, Linear]]
        ] = []  # of each layer and direction, for input and state
        for layer in range(config.num_layers):
            size = config.embedding_size if layer == 0 else self.output_size
            cells = []
            for direction in directions:
                names = [f"encoder.stack.rnn.{{}}_{part}_l{layer}{direction}" for part in ("ih", "hh")]
                matrix, bias = cell_weights(weights, names[0], names[1], size, hidden)
                cells.append((Linear(matrix[:size], bias), Linear(matrix[size:])))
            self._layers.append(cells)
        count = 2 * config.num_layers if self.output_size != hidden else 0
        self._bridge = [
            Linear.named(weights, f"decoder.bridge.projections.{number}", self.output_size, hidden)
            for number in range(count)
        ]

    def __call__(
        self, x: np.ndarray, lengths: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Encodes an embedded source.

        Args:
            x: [B, S, E].
            lengths: [B].

        Returns:
            Outputs [B, S, D], zero on padding, and the decoder's first hidden states and memories, [B, H] for
            each layer.
        """
        real = np.arange(x.shape[1]) < lengths[:, None]  # [B, S]
        # Where a row is reversed, its padding stays behind.
        back = np.where(real, lengths[:, None] - 1 - np.arange(x.shape[1]), np.arange(x.shape[1]))[..., None]
        states: list[np.ndarray] = []  # hidden state and memory in turns, [B, D]
        for cells in self._layers:
            ends = []
            outputs = []
            for direction, cell in enumerate(cells):
                turned = np.take_along_axis(x, back, axis=1) if direction else x
                y, *end = self._run(turned, real, *cell)
                outputs.append(np.take_along_axis(y, back, axis=1) if direction else y)
                ends.append(end)
            x = np.concatenate(outputs, axis=-1)  # [B, S, D]
            states += [np.concatenate(parts, axis=-1) for parts in zip(*ends, strict=True)]
        if self._bridge:
            states = [np.tanh(bridge(state)) for bridge, state in zip(self._bridge, states, strict=True)]
        return x, states[0::2], states[1::2]

    def _run(
        self, x: np.ndarray, real: np.ndarray, of_input: Linear, of_hidden: Linear
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Outputs [B, S, H] of one direction of a layer, and its last hidden state and memory [B, H]."""
        pre = of_input(x)  # [B, S, 4H]
        outputs = np.zeros((*x.shape[:2], self._hidden_size), dtype=np.float32)
        hidden = memory = np.zeros((len(x), self._hidden_size), dtype=np.float32)
        for step in range(x.shape[1]):
            new_hidden, new_memory = lstm_cell(of_hidden(hidden) + pre[:, step], memory)
            goes_on = real[:, step, None]  # [B, 1]
            if goes_on.all():
                outputs[:, step] = hidden = new_hidden
                memory = new_memory
                continue
            hidden = np.where(goes_on, new_hidden, hidden)
            memory = np.where(goes_on, new_memory, memory)
            outputs[:, step] = hidden * goes_on
        return outputs, hidden, memory
