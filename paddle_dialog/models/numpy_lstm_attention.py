"""The recurrent pair over arrays: LSTM layers, and the attention cell with input feeding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.models.numpy_layers import NumpyDecoder, RowSources
from paddle_dialog.models.numpy_operators import NumpyLinear, Weights, known_choice, padding_mask, softmax


class CellWeights(NamedTuple):
    """The weights of an LSTM cell for `lstm_step`, with halved inputs of the sigmoids."""

    of_input: np.ndarray  # [E, 4H]
    of_hidden: np.ndarray  # [H, 4H]
    bias: np.ndarray  # [4H]

    @classmethod
    def named(cls, weights: Weights, name: str, suffix: str, inputs: int, hidden: int) -> CellWeights:
        """Take those of E `inputs` and H `hidden` units named `name.weight_ih` + `suffix` and so on."""
        halves = np.repeat(np.array([0.5, 0.5, 1.0, 0.5], dtype=np.float32), hidden)  # of i, f, g, o
        of_input = weights.take(f"{name}.weight_ih{suffix}", 4 * hidden, inputs)
        of_hidden = weights.take(f"{name}.weight_hh{suffix}", 4 * hidden, hidden)
        bias = weights.take(f"{name}.bias_ih{suffix}", 4 * hidden)
        bias = bias + weights.take(f"{name}.bias_hh{suffix}", 4 * hidden)
        return cls(of_input.T * halves, of_hidden.T * halves, bias * halves)

    def joined(self) -> NumpyLinear:
        """Return the map of input and hidden state [..., E + H] to gates [..., 4H]."""
        return NumpyLinear(np.concatenate([self.of_input, self.of_hidden]), self.bias)


def lstm_step(gates: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take one step of an LSTM (Hochreiter & Schmidhuber 1997) after its products.

    A single tanh serves all gates, since sigmoid(x) = (1 + tanh(x / 2)) / 2.

    Args:
        gates: pre-activations of i, f, g, o with the sigmoids' halved, [N, 4H]; overwritten.
        cell: the cell state of the step before, [N, H].

    Returns:
        Hidden and cell state, [N, H] each.
    """
    one, half, size = np.float32(1), np.float32(0.5), cell.shape[1]
    np.tanh(gates, out=gates)
    take, keep, new, out = (gates[:, part * size : (part + 1) * size] for part in range(4))  # [N, H] each
    cell = ((take + one) * new + (keep + one) * cell) * half
    return (out + one) * half * np.tanh(cell), cell


class NumpyLstmEncoder:
    """The numbers of `LstmEncoder`; the decoder starts with alternating hidden and cell states, [B, H] each."""

    def __init__(self, config: LstmAttentionConfig, weights: Weights) -> None:
        hidden = self._hidden_size = config.hidden_size
        directions = ["", "_reverse"] if config.bidirectional else [""]
        self.output_size = hidden * len(directions)
        sizes = [config.embedding_size] + [self.output_size] * (config.num_layers - 1)
        cells = [
            [
                CellWeights.named(weights, "encoder.stack.rnn", f"_l{layer}{way}", size, hidden)
                for way in directions
            ]
            for layer, size in enumerate(sizes)
        ]
        self._layers = [
            [(NumpyLinear(cell.of_input, cell.bias), NumpyLinear(cell.of_hidden)) for cell in layer]
            for layer in cells
        ]  # for each direction

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Read embedded sources; outputs are zero on padding."""
        x, size = embedded, embedded.shape[1]
        real = np.arange(size) < lengths[:, None]  # [B, S]
        # Reversing a row leaves its padding at the end.
        back = np.where(real, lengths[:, None] - 1 - np.arange(size), np.arange(size))[..., None]
        states: list[np.ndarray] = []
        for cells in self._layers:
            ends, outputs = [], []
            for direction, cell in enumerate(cells):
                turned = np.take_along_axis(x, back, axis=1) if direction else x
                y, *end = self._run(turned, real, *cell)
                outputs.append(np.take_along_axis(y, back, axis=1) if direction else y)
                ends.append(end)
            x = np.concatenate(outputs, axis=-1)  # [B, S, D]
            states += [np.concatenate(parts, axis=-1) for parts in zip(*ends, strict=True)]
        return x, states

    def _run(
        self, x: np.ndarray, real: np.ndarray, of_input: NumpyLinear, of_hidden: NumpyLinear
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return outputs [B, S, H] of one direction of a layer, and its last hidden and cell state [B, H]."""
        pre = of_input(x)  # [B, S, 4H]
        outputs = np.zeros((*x.shape[:2], self._hidden_size), dtype=np.float32)
        hidden = cell = np.zeros((len(x), self._hidden_size), dtype=np.float32)
        for step in range(x.shape[1]):
            new_hidden, new_cell = lstm_step(of_hidden(hidden) + pre[:, step], cell)
            inside = real[:, step, None]  # [B, 1]
            if inside.all():
                outputs[:, step] = hidden = new_hidden
                cell = new_cell
                continue
            hidden = np.where(inside, new_hidden, hidden)
            cell = np.where(inside, new_cell, cell)
            outputs[:, step] = hidden * inside
        return outputs, hidden, cell


class LstmState(NamedTuple):
    """The state of a decoding step."""

    hidden: list[np.ndarray]  # of each layer [N, H]
    cells: list[np.ndarray]  # of each layer [N, H]
    feed: np.ndarray  # the previous output [N, H]
    rows: RowSources  # N rows of B inputs
    values: np.ndarray  # [B, S, H]
    keys: np.ndarray  # [B, S, H]
    mask: np.ndarray  # additive [B, 1, S]

    def reorder(self, index: np.ndarray) -> tuple[LstmState, np.ndarray | None]:
        """Return the state of the rows `index` [M], and the sources that are left [B'], None where all are."""
        moved = self.reorder_within(index)
        rows, left = self.rows.take(index)
        if len(left) == len(self.values):
            return moved._replace(rows=rows), None
        values, keys, mask = (array[left] for array in (self.values, self.keys, self.mask))
        return moved._replace(rows=rows, values=values, keys=keys, mask=mask), left

    def reorder_within(self, index: np.ndarray) -> LstmState:
        """Reorder rows that stay with their source."""
        return self._replace(
            hidden=[layer[index] for layer in self.hidden],
            cells=[layer[index] for layer in self.cells],
            feed=self.feed[index],
        )


class NumpyLstmDecoder(NumpyDecoder):
    """The numbers of `LstmDecoder`."""

    takes_embedded = False

    def __init__(self, config: LstmAttentionConfig, weights: Weights, memory_size: int) -> None:
        size, hidden = config.embedding_size, config.hidden_size
        count = 2 * config.num_layers if memory_size != hidden else 0
        self._bridge = [
            NumpyLinear.named(weights, f"decoder.bridge.projections.{number}", memory_size, hidden)
            for number in range(count)
        ]
        self._memory_projection = NumpyLinear.named(
            weights, "decoder.cell.memory_projection", memory_size, hidden
        )
        self._score = _Score(config, weights)
        self._output_projection = NumpyLinear.named(
            weights, "decoder.cell.output_projection", 2 * hidden, hidden
        )
        self._input_feeding = config.input_feeding
        inputs = [size + hidden if config.input_feeding else size] + [hidden] * (config.num_layers - 1)
        first, *others = (
            CellWeights.named(weights, f"decoder.cell.cells.{n}", "", inputs[n], hidden)
            for n in range(config.num_layers)
        )
        self._of_token, self._bias = first.of_input[:size], first.bias
        self._cells = [
            NumpyLinear(np.concatenate([first.of_input[size:], first.of_hidden])),
            *(cell.joined() for cell in others),
        ]

    def inputs(self, embedded: np.ndarray) -> np.ndarray:
        """Compute the embedded tokens' [..., E] part of the first cell's gates: [..., 4H]."""
        gates: np.ndarray = embedded @ self._of_token + self._bias
        return gates

    def prepare(self, outputs: np.ndarray, final: list[np.ndarray], lengths: np.ndarray) -> LstmState:
        """Project the source and bridge the states; the previous output is zero."""
        states = final
        if self._bridge:
            states = [np.tanh(bridge(state)) for bridge, state in zip(self._bridge, final, strict=True)]
        values = self._memory_projection(outputs)  # [B, S, H]
        mask = padding_mask(lengths, outputs.shape[1])[:, None]  # [B, 1, S]
        rows = RowSources.of(np.arange(len(outputs)), len(outputs))
        feed = np.zeros_like(states[0])
        return LstmState(states[0::2], states[1::2], feed, rows, values, self._score.prepare(values), mask)

    def step(self, inputs: np.ndarray, state: LstmState) -> tuple[np.ndarray, np.ndarray, LstmState]:
        """Decode one more position of every row."""
        hidden, cells = [], []
        x = state.feed if self._input_feeding else state.feed[:, :0]  # [N, H or 0]
        for layer, product in enumerate(self._cells):
            gates = product(np.concatenate([x, state.hidden[layer]], axis=1))  # [N, 4H]
            if layer == 0:
                gates += inputs
            x, cell = lstm_step(gates, state.cells[layer])  # [N, H] each
            hidden.append(x)
            cells.append(cell)
        weights = softmax(self._score(state.rows.scatter(x), state.keys) + state.mask)  # [B, R, S]
        context = state.rows.gather(np.matmul(weights, state.values))  # [N, H]
        output = self._output_projection(np.concatenate([context, x], axis=1))  # [N, H]
        return output, weights, state._replace(hidden=hidden, cells=cells, feed=output)


class _Score:
    """The score functions of `layers.recurrent`."""

    def __init__(self, config: LstmAttentionConfig, weights: Weights) -> None:
        known_choice("model.score", config.score, "dot", "scaled_dot", "additive", "bilinear")
        size = config.hidden_size
        name = "decoder.cell.attention.score"
        self._scale = np.float32(size**-0.5 if config.score == "scaled_dot" else 1.0)
        self._key = self._query = self._vector = None
        if config.score in ("additive", "bilinear"):
            self._key = NumpyLinear.named(weights, f"{name}.key_proj", size, size, bias=False)
        if config.score == "additive":
            self._query = NumpyLinear.named(weights, f"{name}.query_proj", size, size, bias=False)
            self._vector = weights.take(f"{name}.score_proj.weight", size, 1)

    def prepare(self, values: np.ndarray) -> np.ndarray:
        """Return the keys [B, S, H] of the values [B, S, H]."""
        return values if self._key is None else self._key(values)

    def __call__(self, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Score [B, R, S] of queries [B, R, H] against keys [B, S, H]."""
        if self._query is not None:
            together = np.tanh(self._query(query)[:, :, None] + keys[:, None])  # [B, R, S, H]
            return (together @ self._vector)[..., 0]
        return np.matmul(query * self._scale, keys.swapaxes(1, 2))
