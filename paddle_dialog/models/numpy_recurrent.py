"""The recurrent families in NumPy: cells, the pair with attention and input feeding, and the language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from paddle_dialog.config.models import LstmAttentionConfig, RecurrentLmConfig
from paddle_dialog.models.numpy_layers import NumpyDecoder, NumpyEncoder, RowInputs
from paddle_dialog.models.numpy_operators import (
    NumpyLinear,
    Weights,
    padding_mask,
    require_supported,
    softmax,
)

CellState = tuple[np.ndarray, ...]  # hidden and cell state of an LSTM, hidden state of a GRU; [N, H] each


class NumpyCell:
    """An LSTM (Hochreiter & Schmidhuber 1997) or a GRU (Cho et al. 2014) with Paddle's weights.

    Args:
        kind: `lstm` or `gru`.
        name: prefix of its weights, `{name}.weight_ih{suffix}` and so on.
        suffix: Paddle's of layer and direction, such as `_l0_reverse`; empty for a single cell.
        inputs: E.
        hidden: H.

    Attributes:
        input_gates: maps inputs [..., E] to their parts of G gates [..., G H].
    """

    def __init__(self, kind: str, weights: Weights, name: str, suffix: str, inputs: int, hidden: int) -> None:
        require_supported("model.cell", kind, "lstm", "gru")
        self._kind, self._size = kind, hidden
        size = (4 if kind == "lstm" else 3) * hidden
        self.input_gates, self._hidden_gates = (
            NumpyLinear(
                weights.take(f"{name}.weight_{part}{suffix}", size, width).T,
                weights.take(f"{name}.bias_{part}{suffix}", size),
            )
            for part, width in (("ih", inputs), ("hh", hidden))
        )

    def first_state(self, rows: int) -> CellState:
        """Return zeros, [rows, H] each."""
        zeros = np.zeros((rows, self._size), dtype=np.float32)
        return (zeros, zeros) if self._kind == "lstm" else (zeros,)

    def step(self, gates: np.ndarray, state: CellState) -> CellState:
        """Return the state after one more input, of which `gates` are the `input_gates` [N, G H]."""
        recurrent = self._hidden_gates(state[0])  # [N, G H]
        if self._kind == "lstm":
            i, f, g, o = np.split(gates + recurrent, 4, axis=1)  # [N, H] each
            cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
            return sigmoid(o) * np.tanh(cell), cell
        # The reset gate acts after the product with the hidden state, as Paddle's does.
        (reset, update, new), (reset_h, update_h, new_h) = (
            np.split(x, 3, axis=1) for x in (gates, recurrent)
        )
        keep = sigmoid(update + update_h)
        return (keep * state[0] + (1 - keep) * np.tanh(new + sigmoid(reset + reset_h) * new_h),)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), which does not overflow in this form."""
    half = np.float32(0.5)
    return half + half * np.tanh(half * x)


class NumpyLstmEncoder(NumpyEncoder):
    """`LstmEncoder` (of LSTM or GRU layers) in NumPy, with the same results and the states of each layer."""

    def __init__(self, config: LstmAttentionConfig, weights: Weights) -> None:
        hidden = config.hidden_size
        directions = ["", "_reverse"] if config.bidirectional else [""]
        self.output_size = config.encoder_size
        sizes = [config.embedding_size] + [self.output_size] * (config.num_layers - 1)
        self._layers = [
            [
                NumpyCell(config.cell, weights, "encoder.stack.rnn", f"_l{layer}{way}", size, hidden)
                for way in directions
            ]
            for layer, size in enumerate(sizes)
        ]

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, list[CellState]]:
        """Read embedded sources; outputs are zero on padding."""
        x, size = embedded, embedded.shape[1]
        real = np.arange(size) < lengths[:, None]  # [B, S]
        # Reversing a row leaves its padding at the end.
        back = np.where(real, lengths[:, None] - 1 - np.arange(size), np.arange(size))[..., None]
        states: list[CellState] = []
        for cells in self._layers:
            ends, outputs = [], []
            for direction, cell in enumerate(cells):
                turned = np.take_along_axis(x, back, axis=1) if direction else x
                y, end = _run(cell, turned, real)
                outputs.append(np.take_along_axis(y, back, axis=1) if direction else y)
                ends.append(end)
            x = np.concatenate(outputs, axis=-1)  # [B, S, D]
            states.append(tuple(np.concatenate(parts, axis=-1) for parts in zip(*ends, strict=True)))
        return x, states


def _run(cell: NumpyCell, x: np.ndarray, real: np.ndarray) -> tuple[np.ndarray, CellState]:
    """Return outputs [B, S, H] of one direction of a layer, zero on padding, and its last state."""
    gates = cell.input_gates(x)  # [B, S, G H]
    state, outputs = cell.first_state(len(x)), []
    for place in range(x.shape[1]):
        inside = real[:, place, None]  # [B, 1]
        after = cell.step(gates[:, place], state)
        state = tuple(np.where(inside, new, old) for new, old in zip(after, state, strict=True))
        outputs.append(state[0] * inside)
    return np.stack(outputs, axis=1), state


class LstmState(NamedTuple):
    """The state of a decoding step."""

    cells: list[CellState]  # of each layer
    feed: np.ndarray  # the previous output [N, H]
    rows: RowInputs  # N rows of B inputs
    values: np.ndarray  # [B, S, H]
    keys: np.ndarray  # [B, S, H]
    mask: np.ndarray  # additive [B, 1, S]

    def reorder(self, index: np.ndarray) -> tuple[LstmState, np.ndarray | None]:
        """Return the state of the rows `index` [M], and the sources still in use [B'], None if all are."""
        cells = [tuple(part[index] for part in state) for state in self.cells]
        rows, kept = self.rows.take(index)
        moved = self._replace(cells=cells, feed=self.feed[index], rows=rows)
        if kept is None:
            return moved, None
        values, keys, mask = (array[kept] for array in (self.values, self.keys, self.mask))
        return moved._replace(values=values, keys=keys, mask=mask), kept


class NumpyLstmDecoder(NumpyDecoder):
    """`LstmDecoder` in NumPy, with the same results."""

    def __init__(self, config: LstmAttentionConfig, weights: Weights, encoder: NumpyLstmEncoder) -> None:
        size, hidden, name = config.embedding_size, config.hidden_size, "decoder.cell"
        memory_size = config.encoder_size
        # As in `StateBridge`, states of equal width are handed over.
        count = config.num_layers * config.state_parts if memory_size != hidden else 0
        self._bridge = [
            NumpyLinear.named(weights, f"decoder.bridge.projections.{number}", memory_size, hidden)
            for number in range(count)
        ]
        self._memory_projection = NumpyLinear.named(weights, f"{name}.memory_projection", memory_size, hidden)
        self._score = _Score(config, weights)
        self._output_projection = NumpyLinear.named(weights, f"{name}.output_projection", 2 * hidden, hidden)
        self._input_feeding = config.input_feeding
        inputs = [size + hidden if config.input_feeding else size] + [hidden] * (config.num_layers - 1)
        self._cells = [
            NumpyCell(config.cell, weights, f"{name}.cells.{n}", "", inputs[n], hidden)
            for n in range(config.num_layers)
        ]

    def prepare(self, outputs: np.ndarray, final: list[CellState], lengths: np.ndarray) -> LstmState:
        """Project the source and bridge the states; the previous output is zero."""
        cells = final
        if self._bridge:
            bridges = iter(self._bridge)
            cells = [tuple(np.tanh(next(bridges)(part)) for part in state) for state in final]
        values = self._memory_projection(outputs)  # [B, S, H]
        mask = padding_mask(lengths, outputs.shape[1])[:, None]  # [B, 1, S]
        rows = RowInputs.of(np.arange(len(outputs)), len(outputs))
        return LstmState(cells, np.zeros_like(cells[0][0]), rows, values, self._score.prepare(values), mask)

    def step(self, embedded: np.ndarray, state: LstmState) -> tuple[np.ndarray, np.ndarray, LstmState]:
        """Decode one more position of every row."""
        x = (
            np.concatenate([embedded, state.feed], axis=1) if self._input_feeding else embedded
        )  # [N, E (+ H)]
        cells = []
        for cell, before in zip(self._cells, state.cells, strict=True):
            cells.append(cell.step(cell.input_gates(x), before))
            x = cells[-1][0]  # [N, H]
        weights = softmax(self._score(state.rows.scatter(x), state.keys) + state.mask)  # [B, R, S]
        context = state.rows.gather(np.matmul(weights, state.values))  # [N, H]
        output = self._output_projection(np.concatenate([context, x], axis=1))  # [N, H]
        return output, weights, state._replace(cells=cells, feed=output)


class _Score:
    """The score functions of `layers.recurrent`."""

    def __init__(self, config: LstmAttentionConfig, weights: Weights) -> None:
        require_supported("model.score", config.score, "dot", "scaled_dot", "additive", "bilinear")
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


class NumpyRecurrentLm:
    """Implements `StepModel` in NumPy, with the results of `RecurrentLm`.

    A state is one array [N, L, P, H] of L layers and P parts: hidden and cell, of a GRU hidden alone.

    Args:
        vocab_size: V.
        arrays: weights of the network by structured name.
    """

    def __init__(self, config: RecurrentLmConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        weights, width = Weights(arrays), config.width
        table = "embedding.table.weight", vocab_size, width
        self._table = weights.take_table(*table, scale=True)
        self._cells = [
            NumpyCell(config.cell, weights, "rnn", f"_l{layer}", width, width)
            for layer in range(config.num_layers)
        ]
        # The output layer is the table again.
        self._output = NumpyLinear(weights.take(*table).T, weights.take("output.bias", vocab_size))
        weights.check_all_taken()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the state before the begin token, after the ids [B, S] that precede it, of lengths [B]."""
        state = np.stack([np.stack(cell.first_state(len(source)), axis=1) for cell in self._cells], axis=1)
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

    def _advance(self, token: np.ndarray, state: np.ndarray) -> np.ndarray:
        x, after = self._table[token], []  # [N, H]
        for number, cell in enumerate(self._cells):
            parts = cell.step(cell.input_gates(x), tuple(state[:, number].swapaxes(0, 1)))
            x = parts[0]
            after.append(np.stack(parts, axis=1))  # [N, P, H]
        return np.stack(after, axis=1)
