"""The recurrent family: encoder, attention, input-feeding decoder (Luong et al. 2015)."""

from __future__ import annotations

from typing import Any, NamedTuple

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.layers.embeddings import TiedProjection, TokenEmbedding
from paddle_dialog.layers.linear import Linear
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.layers.recurrent import AttentionCell, AttentionMemory, RecurrentEncoder, StateBridge
from paddle_dialog.models.state import gather_rows


class LstmState(NamedTuple):
    """What a decoding step needs: the cell's states and the prepared source."""

    cell: Any
    memory: AttentionMemory


class LstmAttention(nn.Layer):
    """Recurrent encoder-decoder with attention and input feeding.

    Args:
        config: sizes and switches.
        vocab_size: number V of tokens, the same on both sides.
    """

    def __init__(self, config: LstmAttentionConfig, vocab_size: int) -> None:
        super().__init__()
        self.source_embedding = TokenEmbedding(vocab_size, config.embedding_size)
        self.encoder = RecurrentEncoder(
            config.embedding_size,
            config.hidden_size,
            config.num_layers,
            config.cell,
            config.bidirectional,
            config.dropout,
        )
        memory_size = self.encoder.output_size
        self.bridge = StateBridge(memory_size, config.hidden_size, config.num_layers, config.cell)
        self.own_target_embedding = (
            None if config.share_embeddings else TokenEmbedding(vocab_size, config.embedding_size)
        )
        self.cell = AttentionCell(
            config.embedding_size,
            config.hidden_size,
            memory_size,
            config.num_layers,
            config.cell,
            config.score,
            config.dropout,
            config.input_feeding,
        )
        self.decoder = nn.RNN(self.cell)
        self.output = (
            TiedProjection(self.target_embedding)
            if config.tie_output
            else Linear(config.hidden_size, vocab_size)
        )

    @property
    def target_embedding(self) -> TokenEmbedding:
        """The decoder's table; a shared one is registered once, under the source's name."""
        return self.source_embedding if self.own_target_embedding is None else self.own_target_embedding

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Logits of every next token, given the true ones before it.

        Args:
            source: ids [B, S].
            source_lengths: real tokens of each source [B].
            target: ids [B, T], begin token first.

        Returns:
            Logits [B, T, V].
        """
        state = self.encode(source, source_lengths)
        embedded = self.target_embedding(target)  # [B, T, E]
        return self.output(self.cell.unroll(embedded, state.cell, state.memory))

    def encode(self, source: Tensor, source_lengths: Tensor) -> LstmState:
        """The state before the first target token, for a source [B, S] of the given lengths [B]."""
        outputs, final = self.encoder(self.source_embedding(source), source_lengths)  # [B, S, D]
        mask = length_mask(source_lengths, source.shape[1])  # [B, S]
        memory = self.cell.prepare_memory(outputs, mask)
        return LstmState(self.cell.initial_states(self.bridge(final)), memory)

    def step(self, token: Tensor, state: LstmState) -> tuple[Tensor, LstmState]:
        """Logits [N, V] after one more token [N], and the new state."""
        hidden, cell_state = self.cell(self.target_embedding(token), state.cell, memory=state.memory)
        return self.project(hidden), LstmState(cell_state, state.memory)

    def reorder(self, state: LstmState, index: Tensor) -> LstmState:
        """The state of the rows ``index`` [M]."""
        return gather_rows(state, index)

    def reorder_within(self, state: LstmState, index: Tensor) -> LstmState:
        """``reorder`` for rows that stay with their input: the prepared source is the same and not copied."""
        return LstmState(gather_rows(state.cell, index), state.memory)

    def attention_weights(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Attention [B, T, S] of each target position over the source, for heat maps."""
        state = self.encode(source, source_lengths)
        memory, rows = state.memory, []
        for position in range(target.shape[1]):
            _, state = self.step(target[:, position], state)
            rows.append(self.cell.attention_weights(state.cell, memory))  # [B, S]
        return paddle.stack(rows, axis=1)

    def project(self, hidden: Tensor) -> Tensor:
        """The output layer for single steps [N, H], where ``addmm`` takes as little as half of a Linear's time."""
        if isinstance(self.output, nn.Linear):
            return paddle.addmm(self.output.bias, hidden, self.output.weight)
        return self.output(hidden)
