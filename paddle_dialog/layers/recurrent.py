"""Recurrent encoder, attention over its outputs, the bridge to the decoder's states, and the input-feeding cell.

What does not depend on the decoder's state is computed once: `keys = score.prepare(memory)`, then
`score(query, keys)` at every step.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.layers.masks import additive_mask
from paddle_dialog.layers.operators import Dropout

ScoreName = Literal["additive", "dot", "scaled_dot", "bilinear"]
LayerStates = list[
    tuple[Tensor, ...]
]  # of each layer hidden and cell state, of a GRU the hidden one; [B, H] each


class RecurrentEncoder(nn.Layer):
    """Layers of an LSTM (Hochreiter & Schmidhuber 1997) or a GRU (Cho et al. 2014) over a padded batch.

    In both directions it reads the source from both ends and concatenates (Schuster & Paliwal 1997). Dropout acts
    between layers; a single layer has none.

    Args:
        config: sizes E (embedding), H (hidden) and L (layers).
    """

    def __init__(self, config: LstmAttentionConfig) -> None:
        super().__init__()
        self.num_directions = 2 if config.bidirectional else 1
        kind = nn.LSTM if config.cell == "lstm" else nn.GRU
        self.rnn = kind(
            config.embedding_size,
            config.hidden_size,
            num_layers=config.num_layers,
            direction="bidirect" if config.bidirectional else "forward",
            dropout=config.dropout if config.num_layers > 1 else 0.0,
        )

    def forward(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, LayerStates]:
        """Encode a padded batch.

        Args:
            inputs: embedded source [B, S, E].
            lengths: real tokens of each row [B].

        Returns:
            Outputs [B, S, directions * H] and the final states, one entry a layer with tensors
            [B, directions * H]: the last states of both directions, concatenated.
        """
        outputs, final = self.rnn(inputs, sequence_length=lengths)  # [B, S, D*H], [L*D, B, H] each
        parts = final if isinstance(final, tuple) else (final,)
        return outputs, list(zip(*map(self._by_layer, parts), strict=True))

    def _by_layer(self, state: Tensor) -> list[Tensor]:
        """Split [L*D, B, H] into L tensors [B, D*H]."""
        ends, count = state.unbind(0), self.num_directions  # [B, H] each
        return [paddle.concat(ends[first : first + count], axis=-1) for first in range(0, len(ends), count)]


class Score(nn.Layer):
    """How well each memory position answers a query.

    Args:
        name: `dot` is kᵀq (Luong et al. 2015, section 3.1), `scaled_dot` kᵀq / √H (Vaswani et al. 2017, equation 1),
            `bilinear` qᵀ W k (Luong et al. 2015, section 3.1, "general"), `additive` vᵀ tanh(W k + U q), without
            biases (Bahdanau et al. 2015, appendix A.1.2).
        size: H of query and memory.
    """

    def __init__(self, name: ScoreName, size: int) -> None:
        super().__init__()
        self.name = name
        if name in ("additive", "bilinear"):
            self.key_proj = nn.Linear(size, size, bias_attr=False)
        if name == "additive":
            self.query_proj = nn.Linear(size, size, bias_attr=False)
            self.score_proj = nn.Linear(size, 1, bias_attr=False)

    def prepare(self, memory: Tensor) -> Tensor:
        """Return the keys [B, S, H] of a memory [B, S, H]."""
        return self.key_proj(memory) if self.name in ("additive", "bilinear") else memory

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score the positions of `keys` [B, S, H] against a query [B, H], as [B, S]."""
        if self.name == "additive":
            hidden = F.tanh(self.query_proj(query).unsqueeze(1) + keys)  # [B, S, H]
            return self.score_proj(hidden).squeeze(2)
        if self.name == "scaled_dot":
            query = query * query.shape[-1] ** -0.5
        return paddle.matmul(query.unsqueeze(1), keys, transpose_y=True).squeeze(1)


class Attention(nn.Layer):
    """Average of values, weighted by the softmax of a score function.

    Args:
        size: H of query and values.
    """

    def __init__(self, name: ScoreName, size: int) -> None:
        super().__init__()
        self.score = Score(name, size)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend to the values.

        Args:
            query: [B, H].
            keys: [B, S, H] from `score.prepare(memory)`.
            values: [B, S, H].
            mask: bool [B, S], True = real.

        Returns:
            Context [B, H] and the weights [B, S]. Masked positions weigh exactly 0; where all are masked the
            context is zero.
        """
        scores = self.score(query, keys)  # [B, S]
        # The product makes zero exact: the softmax leaves about 1e-28, or 1 / S in a fully masked row.
        weights = F.softmax(scores + additive_mask(mask, scores.dtype)) * mask.astype(scores.dtype)
        return paddle.matmul(weights.unsqueeze(1), values).squeeze(1), weights


class StateBridge(nn.Layer):
    """Turns the encoder's final states into the decoder's initial ones.

    Where the widths agree the states are handed over as they are; otherwise each passes a tanh layer
    (Bahdanau et al. 2015, appendix A.2.2).

    Args:
        config: sizes of encoder and decoder.
    """

    def __init__(self, config: LstmAttentionConfig) -> None:
        super().__init__()
        sizes = config.encoder_size, config.hidden_size
        self.identity = sizes[0] == sizes[1]
        count = 0 if self.identity else config.state_parts * config.num_layers
        self.projections = nn.LayerList([nn.Linear(*sizes) for _ in range(count)])

    def forward(self, states: LayerStates) -> LayerStates:
        """Map the encoder's states [B, directions * H] to [B, H], layer by layer."""
        if self.identity:
            return states
        projections = iter(self.projections)
        return [tuple(paddle.tanh(next(projections)(part)) for part in state) for state in states]


class AttentionMemory(NamedTuple):
    """What a decoder looks at in every step, computed once a sequence."""

    values: Tensor  # [B, S, H], the projected encoder outputs
    keys: Tensor  # [B, S, *], prepared for the score function
    mask: Tensor  # [B, S] bool, True where there is a token


class AttentionCell(nn.Layer):
    """Stacked LSTM or GRU cells, attention over the source, and input feeding.

    The step's input is the embedding and the previous attentional output (input feeding, Luong et al.
    2015, section 3.3); the output is a linear map of context and top hidden state (their equation 5, without
    the tanh).

    Args:
        config: sizes E (embedding), H (hidden) and L (layers), and the score function; without input feeding the
            step's input is the embedding alone. Dropout acts on the output of every cell.
    """

    def __init__(self, config: LstmAttentionConfig) -> None:
        super().__init__()
        hidden, self.input_feeding = config.hidden_size, config.input_feeding
        first = config.embedding_size + (hidden if self.input_feeding else 0)
        kind = nn.LSTMCell if config.cell == "lstm" else nn.GRUCell
        self.cells = nn.LayerList(
            [kind(hidden if layer else first, hidden) for layer in range(config.num_layers)]
        )
        self.dropout = Dropout(config.dropout)
        self.memory_projection = nn.Linear(config.encoder_size, hidden)
        self.attention = Attention(config.score, hidden)
        self.output_projection = nn.Linear(2 * hidden, hidden)

    def prepare_memory(self, encoder_outputs: Tensor, mask: Tensor) -> AttentionMemory:
        """Project the encoder outputs [B, S, M], once for all steps; `mask` is bool [B, S]."""
        values = self.memory_projection(encoder_outputs)  # [B, S, H]
        return AttentionMemory(values, self.attention.score.prepare(values), mask)

    def initial_states(self, layer_states: LayerStates) -> tuple[LayerStates, Tensor]:
        """Return the bridged states and a zero input feed [B, H]."""
        return layer_states, paddle.zeros_like(layer_states[0][0])

    def forward(
        self, inputs: Tensor, states: tuple[LayerStates, Tensor], memory: AttentionMemory
    ) -> tuple[Tensor, Tensor, tuple[LayerStates, Tensor]]:
        """Take one step.

        Args:
            inputs: embedded token [B, E].
            states: the states of the cells and the previous output [B, H].
            memory: the prepared source.

        Returns:
            Output [B, H], attention weights [B, S] and the new states.
        """
        layer_states, feed = states
        x = paddle.concat([inputs, feed], axis=-1) if self.input_feeding else inputs  # [B, E(+H)]
        new_states = []
        for cell, before in zip(self.cells, layer_states, strict=True):
            out, after = cell(x, before if len(before) > 1 else before[0])  # [B, H]
            new_states.append(after if isinstance(after, tuple) else (after,))
            x = self.dropout(out)
        context, weights = self.attention(x, memory.keys, memory.values, memory.mask)  # [B, H], [B, S]
        output = self.output_projection(paddle.concat([context, x], axis=-1))  # [B, H]
        return output, weights, (new_states, output)

    def unroll(
        self, embedded: Tensor, states: tuple[LayerStates, Tensor], memory: AttentionMemory
    ) -> tuple[Tensor, Tensor]:
        """Run all steps of a known target from the initial states.

        Args:
            embedded: the target [B, T, E].
            states: from `initial_states`.
            memory: the prepared source.

        Returns:
            The outputs [B, T, H] and the attention weights [B, T, S].
        """
        outputs, weights = [], []
        for inputs in embedded.unbind(1):
            output, attention, states = self(inputs, states, memory)
            outputs.append(output)
            weights.append(attention)
        return paddle.stack(outputs, axis=1), paddle.stack(weights, axis=1)
