"""Language models: a causal Transformer (Radford et al. 2018), and LSTM layers that carry their state along.

Positions count from a text's begin token; those of what stands before it (a title, a style) are negative.
"""

from __future__ import annotations

from typing import NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import CausalLmConfig, RecurrentLmConfig
from paddle_dialog.layers.causal_transformer import CausalTransformer
from paddle_dialog.layers.embeddings import TiedProjection, TokenEmbedding
from paddle_dialog.layers.masks import additive_mask, causal_mask, length_mask
from paddle_dialog.layers.operators import Dropout, add_bias
from paddle_dialog.layers.transformer import KeyValue
from paddle_dialog.models.pair import gather_rows


class CausalLmState(NamedTuple):
    """The state of a decoding step; all tensors have the batch as their first axis."""

    source: list[KeyValue]  # per layer [N, heads, S, d] each
    mask: Tensor  # additive [N, 1, 1, S]
    past: list[KeyValue] | None  # per layer [N, heads, steps so far, d] each


class CausalLm(nn.Layer):
    """Predicts each next token of packed texts, none of which sees another.

    Args:
        vocab_size: number V of tokens.
    """

    def __init__(self, config: CausalLmConfig, vocab_size: int) -> None:
        super().__init__()
        width = config.width
        self.embedding = TokenEmbedding(vocab_size, width, scale=True)
        init = paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, 0.1))
        self.positions = nn.Embedding(config.max_positions, width, weight_attr=init)
        self.stack = CausalTransformer(config)
        self.dropout = Dropout(config.dropout)
        self.output = TiedProjection(self.embedding)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return logits of every next token.

        Args:
            ids: int64 [B, T].
            positions: int64 [B, T]. A text begins where a position is not one above that before it.

        Returns:
            Logits [B, T, V].
        """
        mask = additive_mask(_same_text(positions) & causal_mask(ids.shape[1])).unsqueeze(1)  # [B, 1, T, T]
        x = self._embed(ids, positions)  # [B, T, D]
        for layer in self.stack.layers:
            x, _ = layer(x, mask)  # [B, T, D]
        return self.output(self.stack.final_norm(x))

    def encode(self, source: Tensor, lengths: Tensor) -> CausalLmState:
        """Return the state before the begin token, after what stands before it: ids [B, S] of the lengths [B]."""
        length = source.shape[1]
        positions = paddle.arange(length).unsqueeze(0) - lengths.unsqueeze(1)  # [B, S]
        _, read = self.stack.read(self._embed(source, positions))
        return CausalLmState(read, additive_mask(length_mask(lengths, length)).unsqueeze([1, 2]), None)

    def step(self, token: Tensor, state: CausalLmState) -> tuple[Tensor, CausalLmState]:
        """Return logits [N, V] after one more token [N], and the new state."""
        done = 0 if state.past is None else state.past[0][0].shape[2]
        x = self._embed(token.unsqueeze(1), paddle.full([token.shape[0], 1], done, "int64"))  # [N, 1, D]
        x, past = self.stack(x, state.source, state.mask, state.past)
        return self.output(x.squeeze(1)), state._replace(past=past)

    def reorder(self, state: CausalLmState, index: Tensor) -> CausalLmState:
        """Return the state of the rows `index` [M]."""
        return gather_rows(state, index)

    def _embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Embed [B, T] as [B, T, D]; the vectors of negative positions stand at the table's end."""
        table = positions % self.positions.weight.shape[0]
        return self.dropout(self.embedding(ids) + self.positions(table))


def _same_text(positions: Tensor) -> Tensor:
    """Return whether two places of a row [B, T] belong to one text, as bool [B, T, T]."""
    begins = positions[:, 1:] != positions[:, :-1] + 1  # [B, T - 1]
    text = F.pad(begins.astype("int32").cumsum(axis=1), [1, 0])  # [B, T]
    return text.unsqueeze(2) == text.unsqueeze(1)


class RecurrentLmState(NamedTuple):
    """Hidden states and cells of all layers, row first."""

    hidden: Tensor  # [N, L, H]
    cell: Tensor  # [N, L, H]


class CarriedState(nn.Layer):
    """The state at the end of the last window of each row of a training batch; bundles do not hold it.

    Args:
        rows: of a batch B.
        num_layers: L.
        width: H.
    """

    training_only = True

    def __init__(self, rows: int, num_layers: int, width: int) -> None:
        super().__init__()
        self.register_buffer("hidden", paddle.zeros([rows, num_layers, width]))
        self.register_buffer("cell", paddle.zeros([rows, num_layers, width]))
        self.register_buffer("position", paddle.full([rows], -2, "int64"))  # no text goes on from it


class RecurrentLm(nn.Layer):
    """Predicts each next token; in training, row i of a batch goes on where row i of the batch before ended.

    The gradient stops at the window's beginning (truncated backpropagation through time). In evaluation each row
    is a text of its own.

    Args:
        config: sizes and switches.
        vocab_size: number V of tokens.
        rows: of a training batch.
    """

    def __init__(self, config: RecurrentLmConfig, vocab_size: int, rows: int) -> None:
        super().__init__()
        self.reset = config.reset
        self.embedding = TokenEmbedding(vocab_size, config.width)
        self.layers = nn.LayerList([nn.LSTM(config.width, config.width) for _ in range(config.num_layers)])
        self.dropout = Dropout(config.dropout)
        self.output = TiedProjection(self.embedding)
        self.carried = CarriedState(rows, config.num_layers, config.width)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return logits of every next token.

        Args:
            ids: int64 [B, T].
            positions: int64 [B, T]. A text begins where a position is not one above that before it.

        Returns:
            Logits [B, T, V].
        """
        if not self.training:
            outputs, _ = self._run(ids, _begins(positions, positions[:, 0] - 1), self._empty(ids.shape[0]))
            return self.output(outputs)
        carried = self.carried
        begins = _begins(positions, carried.position)  # [B, T]
        before = RecurrentLmState(carried.hidden.clone(), carried.cell.clone())  # the buffers are written to
        outputs, state = self._run(ids, begins, before)
        for buffer, value in zip((carried.hidden, carried.cell), state, strict=True):
            paddle.assign(value.detach(), buffer)
        paddle.assign(positions[:, -1], carried.position)
        return self.output(outputs)

    def encode(self, source: Tensor, lengths: Tensor) -> RecurrentLmState:
        """Return the state before the begin token, after what stands before it: ids [B, S] of the lengths [B]."""
        size = source.shape[1]
        shift = size - lengths.unsqueeze(1)  # [B, 1]; the texts are moved to the end of their rows
        places = paddle.arange(size).unsqueeze(0) - shift  # [B, S]
        ids = paddle.take_along_axis(source, places.clip(min=0), axis=1)
        _, state = self._run(ids, places == 0, self._empty(len(source)), always=True)
        real = (lengths > 0).astype("float32").unsqueeze([1, 2])  # [B, 1, 1]
        return RecurrentLmState(*(part * real for part in state))

    def step(self, token: Tensor, state: RecurrentLmState) -> tuple[Tensor, RecurrentLmState]:
        """Return logits [N, V] after one more token [N], and the new state."""
        outputs, state = self._run(token.unsqueeze(1), paddle.zeros([len(token), 1], "bool"), state)
        return self.output(outputs.squeeze(1)), state

    def reorder(self, state: RecurrentLmState, index: Tensor) -> RecurrentLmState:
        """Return the state of the rows `index` [M]."""
        rows: RecurrentLmState = gather_rows(state, index)
        return rows

    def _empty(self, rows: int) -> RecurrentLmState:
        zeros = paddle.zeros([rows, *self.carried.hidden.shape[1:]])
        return RecurrentLmState(zeros, zeros)

    def _run(
        self, ids: Tensor, begins: Tensor, state: RecurrentLmState, always: bool = False
    ) -> tuple[Tensor, RecurrentLmState]:
        """Run all layers over a window; return outputs [B, T, H] and the state after it.

        Args:
            ids: [B, T].
            begins: where a text begins, bool [B, T].
            state: before the window.
            always: reset the state there even if the config does not.
        """
        x = self.dropout(self.embedding(ids))  # [B, T, H]
        resets = bool((self.reset or always) and begins.any())
        keep = 1.0 - begins.astype(x.dtype) if resets else None  # [B, T]
        hidden, cells = [], []
        for layer, h, c in zip(self.layers, state.hidden.unbind(1), state.cell.unbind(1), strict=True):
            if keep is None:
                x, (h, c) = layer(x, (h.unsqueeze(0), c.unsqueeze(0)))  # [B, T, H], [1, B, H]
                h, c = h.squeeze(0), c.squeeze(0)  # [B, H]
            else:
                x, h, c = _run_by_steps(layer, x, h, c, keep)
            x = self.dropout(x)
            hidden.append(h)
            cells.append(c)
        return x, RecurrentLmState(paddle.stack(hidden, axis=1), paddle.stack(cells, axis=1))


def _run_by_steps(
    layer: nn.LSTM, x: Tensor, h: Tensor, c: Tensor, keep: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one layer over [B, T, H] from the state `h`, `c` [B, H], which is dropped where `keep` [B, T] is 0."""
    bias = layer.bias_ih_l0 + layer.bias_hh_l0
    gates = add_bias(paddle.matmul(x, layer.weight_ih_l0, transpose_y=True), bias)  # [B, T, 4H]
    outputs = []
    for gate, kept in zip(gates.unbind(1), keep.unsqueeze(-1).unbind(1), strict=True):
        h, c = h * kept, c * kept
        pre = gate + paddle.matmul(h, layer.weight_hh_l0, transpose_y=True)  # [B, 4H]
        take, forget, new, out = pre.chunk(4, axis=-1)
        c = F.sigmoid(forget) * c + F.sigmoid(take) * paddle.tanh(new)  # [B, H]
        h = F.sigmoid(out) * paddle.tanh(c)  # [B, H]
        outputs.append(h)
    return paddle.stack(outputs, axis=1), h, c


def _begins(positions: Tensor, before: Tensor) -> Tensor:
    """Return where a text begins, bool [B, T]; `before` [B] are the positions before the row."""
    previous = paddle.concat([before.unsqueeze(1), positions[:, :-1]], axis=1)  # [B, T]
    return positions != previous + 1
