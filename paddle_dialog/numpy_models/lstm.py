"""The LSTM family in decoding on the CPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.numpy_models.operators import Linear, Weights, padding_mask, softmax, without_padding
from paddle_dialog.numpy_models.recurrent import Encoder, cell_weights, lstm_cell
from paddle_dialog.numpy_models.sources import RowInputs


class LstmState(NamedTuple):
    """What a decoding step needs."""

    hidden: list[np.ndarray]  # of each layer [N, H]
    memory: list[np.ndarray]  # the cells' own, of each layer [N, H]
    feed: np.ndarray  # the previous output [N, H]
    rows: RowInputs  # N rows of B inputs
    values: np.ndarray  # [B, S, H]
    keys: np.ndarray  # [B, S, H]
    mask: np.ndarray  # additive [B, 1, S]


class NumpyLstm:
    """Offers ``StepModel`` over arrays, with the numbers of ``LstmAttention`` with LSTM cells.

    Args:
        config: of the network.
        vocab_size: V.
        weights: of the network.

    Raises:
        NotServed: a weight is missing or has another shape.
    """

    uses_arrays = True

    def __init__(self, config: LstmAttentionConfig, vocab_size: int, weights: Weights) -> None:
        size, hidden = config.embedding_size, config.hidden_size
        target_table = weights.take("source_embedding.table.weight", vocab_size, size)
        self._source_table = without_padding(target_table)
        if not config.share_embeddings:
            target_table = weights.take("own_target_embedding.table.weight", vocab_size, size)
        self._encoder = Encoder(config, weights)
        self._memory_projection = Linear.named(
            weights, "decoder.cell.memory_projection", self._encoder.output_size, hidden
        )
        self._score = _Score(config, weights)
        self._output_projection = Linear.named(weights, "decoder.cell.output_projection", 2 * hidden, hidden)
        self._output = (
            Linear(target_table.T, weights.take("output.bias", vocab_size))
            if config.tie_output
            else Linear.named(weights, "output", hidden, vocab_size)
        )
        fed = hidden if config.input_feeding else 0
        inputs = [size + fed] + [hidden] * (config.num_layers - 1)
        cells = [
            cell_weights(
                weights,
                f"decoder.cell.cells.{n}.{{}}_ih",
                f"decoder.cell.cells.{n}.{{}}_hh",
                inputs[n],
                hidden,
            )
            for n in range(config.num_layers)
        ]
        self._input_feeding = config.input_feeding
        # What the first cell makes of a token depends on nothing else.
        self._token_gates = without_padding(target_table) @ cells[0][0][:size] + cells[0][1]  # [V, 4H]
        self._cells = [Linear(cells[0][0][size:]), *(Linear(*cell) for cell in cells[1:])]

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> LstmState:
        """The state before the first target token, for a source [B, S] of the given lengths [B]."""
        outputs, hidden, memory = self._encoder(self._source_table[source], lengths)  # [B, S, D]
        values = self._memory_projection(outputs)  # [B, S, H]
        mask = padding_mask(lengths, source.shape[1])[:, None]  # [B, 1, S]
        rows = RowInputs.of(np.arange(len(source)), len(source))
        return LstmState(
            hidden, memory, np.zeros_like(hidden[0]), rows, values, self._score.prepare(values), mask
        )

    def step(self, token: np.ndarray, state: LstmState) -> tuple[np.ndarray, LstmState]:
        """Logits [N, V] after one more token [N], and the new state."""
        hidden, memory = [], []
        x = state.feed if self._input_feeding else state.feed[:, :0]  # [N, H or 0]
        for layer, product in enumerate(self._cells):
            gates = product(np.concatenate([x, state.hidden[layer]], axis=1))  # [N, 4H]
            if layer == 0:
                gates += self._token_gates[token]
            x, cell = lstm_cell(gates, state.memory[layer])  # [N, H] each
            hidden.append(x)
            memory.append(cell)
        weights = softmax(self._score(state.rows.spread(x), state.keys) + state.mask)  # [B, R, S]
        context = state.rows.collect(np.matmul(weights, state.values))  # [N, H]
        output = self._output_projection(np.concatenate([context, x], axis=1))  # [N, H]
        return self._output(output), state._replace(hidden=hidden, memory=memory, feed=output)

    def reorder(self, state: LstmState, index: np.ndarray) -> LstmState:
        """The state of the rows ``index`` [M]."""
        moved = self.reorder_within(state, index)
        rows, left = state.rows.take(index)
        if len(left) == len(state.values):
            return moved._replace(rows=rows)
        return moved._replace(
            rows=rows, values=state.values[left], keys=state.keys[left], mask=state.mask[left]
        )

    def reorder_within(self, state: LstmState, index: np.ndarray) -> LstmState:
        """``reorder`` for rows that stay with their input: what belongs to the source is not copied."""
        return state._replace(
            hidden=[layer[index] for layer in state.hidden],
            memory=[layer[index] for layer in state.memory],
            feed=state.feed[index],
        )


class _Score:
    """The score functions of ``layers.attention``."""

    def __init__(self, config: LstmAttentionConfig, weights: Weights) -> None:
        size = config.hidden_size
        name = "decoder.cell.attention.score"
        self._scale = np.float32(size**-0.5 if config.score == "scaled_dot" else 1.0)
        self._key = self._query = self._vector = None
        if config.score in ("additive", "bilinear"):
            self._key = Linear.named(weights, f"{name}.key_proj", size, size, bias=False)
        if config.score == "additive":
            self._query = Linear.named(weights, f"{name}.query_proj", size, size, bias=False)
            self._vector = weights.take(f"{name}.score_proj.weight", size, 1)

    def prepare(self, values: np.ndarray) -> np.ndarray:
        """The keys [B, S, H] of the values [B, S, H]."""
        return values if self._key is None else self._key(values)

    def __call__(self, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Scores [B, R, S] of queries [B, R, H] against keys [B, S, H]."""
        if self._query is not None:
            together = np.tanh(self._query(query)[:, :, None] + keys[:, None])  # [B, R, S, H]
            return (together @ self._vector)[..., 0]
        return np.matmul(query * self._scale, keys.swapaxes(1, 2))
