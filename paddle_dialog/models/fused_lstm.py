"""The LSTM family in decoding: the same numbers from fewer and larger operators.

A search steps with a handful of rows, where most of a step is the launching of operators. Here input and hidden
weights of each cell are one matrix, its two biases one vector, and the attention mask is made once a sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.masks import additive_mask
from paddle_dialog.models.lstm_attention import LstmAttention
from paddle_dialog.models.state import gather_rows


class FusedState(NamedTuple):
    """What a decoding step needs."""

    hidden: list[Tensor]  # of each layer [N, H]
    memory: list[Tensor]  # the cells' own, of each layer [N, H]
    feed: Tensor  # the previous output [N, H]
    values: Tensor  # [N, S, H]
    keys: Tensor  # [N, S, *]
    mask: Tensor  # additive [N, S]


class FusedLstm:
    """Offers ``StepModel`` over the weights that a network has when this is made.

    Args:
        network: a trained network of LSTM cells; later changes of its weights are not seen.
    """

    def __init__(self, network: LstmAttention) -> None:
        self._network = network
        self._input_feeding = network.cell.input_feeding
        with paddle.no_grad():
            self._weights = [
                # A transposed view would be copied at every step.
                paddle.concat([cell.weight_ih, cell.weight_hh], axis=1).t().contiguous()
                for cell in network.cell.cells
            ]  # [input + H, 4H] each
            self._biases = [cell.bias_ih + cell.bias_hh for cell in network.cell.cells]  # [4H] each

    @staticmethod
    def serves(network: nn.Layer) -> bool:
        """Whether a network is of the family that this speeds up."""
        return isinstance(network, LstmAttention) and all(
            isinstance(cell, nn.LSTMCell) for cell in network.cell.cells
        )

    def encode(self, source: Tensor, lengths: Tensor) -> FusedState:
        """The state before the first target token, for a source [B, S] of the given lengths [B]."""
        (layers, feed), memory = self._network.encode(source, lengths)
        return FusedState(
            [hidden for hidden, _ in layers],
            [cell for _, cell in layers],
            feed,
            memory.values,
            memory.keys,
            additive_mask(memory.mask),
        )

    def step(self, token: Tensor, state: FusedState) -> tuple[Tensor, FusedState]:
        """Logits [N, V] after one more token [N], and the new state."""
        x = self._network.target_embedding(token)  # [N, E]
        if self._input_feeding:
            x = paddle.concat([x, state.feed], axis=-1)  # [N, E + H]
        hidden, memory = [], []
        for layer, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            gates = paddle.addmm(bias, paddle.concat([x, state.hidden[layer]], axis=-1), weight)  # [N, 4H]
            take, keep, new, out = gates.chunk(4, axis=-1)  # [N, H] each
            cell = F.sigmoid(keep) * state.memory[layer] + F.sigmoid(take) * paddle.tanh(new)  # [N, H]
            x = F.sigmoid(out) * paddle.tanh(cell)  # [N, H]
            memory.append(cell)
            hidden.append(x)
        attention = self._network.cell.attention
        weights = F.softmax(attention.score(x, state.keys) + state.mask)  # [N, S]
        context = paddle.matmul(weights.unsqueeze(1), state.values).squeeze(1)  # [N, H]
        projection = self._network.cell.output_projection
        output = paddle.addmm(
            projection.bias, paddle.concat([context, x], axis=-1), projection.weight
        )  # [N, H]
        new_state = FusedState(hidden, memory, output, state.values, state.keys, state.mask)
        return self._network.project(output), new_state

    def reorder(self, state: FusedState, index: Tensor) -> FusedState:
        """The state of the rows ``index`` [M]."""
        return gather_rows(state, index)

    def reorder_within(self, state: FusedState, index: Tensor) -> FusedState:
        """``reorder`` for rows that stay with their input: what belongs to the source is not copied."""
        hidden, memory, feed = gather_rows((state.hidden, state.memory, state.feed), index)
        return FusedState(hidden, memory, feed, state.values, state.keys, state.mask)
