"""Source to target with copying: a family's encoder and decoder, and a pointer-generator as their output layer."""

from __future__ import annotations

from typing import Any, NamedTuple

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig
from paddle_dialog.layers.embeddings import TokenEmbedding
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.layers.pointer_generator import PointerGenerator, extended_log_probs, first_positions
from paddle_dialog.models.families import build_pair
from paddle_dialog.models.pair import gather_rows
from paddle_dialog.text.vocabulary import Vocabulary


class PointerState(NamedTuple):
    """The state of a decoding step; the first axis of all tensors is the row."""

    memory: Any  # the source as the decoder sees it
    past: Any  # the target so far
    copy_ids: Tensor  # extended ids of the source [N, S]
    first: Tensor  # the first position of each one's token [N, S]
    extra: Tensor  # ids beyond the vocabulary, the same number in every row [N]


class PointerSeq2Seq(nn.Layer):
    """Offers `StepModel` with log-probabilities over an extended vocabulary.

    Tokens outside the vocabulary have the ids V, V + 1, … in the order in which they occur in their source.

    Args:
        config: the family and its sizes.
        vocab_size: V, the same on both sides.
    """

    returns_log_probabilities = True

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        table = (vocab_size, config.embedding_size)
        self.vocab_size = vocab_size
        self.embedding = TokenEmbedding(*table, scale=config.scale_embeddings)
        self.own_target_embedding = (
            None if config.share_embeddings else TokenEmbedding(*table, scale=config.scale_embeddings)
        )
        # The Transformer applies dropout to embeddings after adding positions.
        self.embedding_dropout = Dropout(config.dropout if isinstance(config, LstmAttentionConfig) else 0.0)
        self.encoder, self.decoder = build_pair(config)
        tied_to = self.target_embedding if config.tie_output else None
        self.generator = PointerGenerator(config.width, vocab_size, tied_to, bias=config.output_bias)
        self.dropout = Dropout(config.dropout)

    @property
    def target_embedding(self) -> TokenEmbedding:
        """The decoder's table; a shared one is registered once, as `embedding`."""
        return self.embedding if self.own_target_embedding is None else self.own_target_embedding

    def forward(
        self, source: Tensor, source_lengths: Tensor, target: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Score every next token, given the true ones before it.

        Args:
            source: extended ids [B, S].
            source_lengths: [B].
            target: extended ids [B, T], begin token first.

        Returns:
            Logits [B, T, V], gate logits [B, T], attention [B, T, S] and the source's ids [B, S].
        """
        memory, past = self._read(source, source_lengths)
        hidden, attention = self.decoder(self._embed(target, self.target_embedding), memory, past)
        logits, gate = self.generator(self.dropout(hidden))  # [B, T, V], [B, T]
        return logits, gate, attention, source

    def encode(self, source: Tensor, lengths: Tensor) -> PointerState:
        """Return the state before the first token, for sources [B, S] of the given lengths [B]."""
        memory, past = self._read(source, lengths)
        extra = paddle.clip(source.max() + 1 - self.vocab_size, min=0)  # []
        extras = extra.reshape([1]).expand([source.shape[0]])  # [B]
        return PointerState(memory, past, source, first_positions(source), extras)

    def step(self, token: Tensor, state: PointerState) -> tuple[Tensor, PointerState]:
        """Return log-probabilities [N, V + X] after one more token [N], and the new state."""
        embedded = self._embed(token, self.target_embedding)  # [N, E]
        hidden, attention, past = self.decoder.step(embedded, state.memory, state.past)
        logits, gate = self.generator(self.dropout(hidden))  # [N, V], [N]
        extra = int(state.extra[0])
        scores = extended_log_probs(logits, gate, attention, state.copy_ids, state.first, extra)
        return scores, state._replace(past=past)

    def reorder(self, state: PointerState, index: Tensor) -> PointerState:
        """Return the state of the rows `index` [M]."""
        return gather_rows(state, index)

    def reorder_within(self, state: PointerState, index: Tensor) -> PointerState:
        """Reorder rows that stay with their sources, which need not move."""
        return state._replace(past=gather_rows(state.past, index))

    def attention_weights(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Return the attention [B, T, S] of each target position over the source, for heat maps."""
        return self(source, lengths, target)[2]

    def _read(self, source: Tensor, lengths: Tensor) -> tuple[Any, Any]:
        """Return the decoder's memory and past of sources [B, S]."""
        real = length_mask(lengths, source.shape[1])  # [B, S]
        outputs, final = self.encoder(self._embed(source, self.embedding), lengths, real)  # [B, S, H]
        return self.decoder.prepare(outputs, real, final)

    def _embed(self, ids: Tensor, table: TokenEmbedding) -> Tensor:
        """Embed extended ids [...] as [..., E]; those beyond the vocabulary are read as unknown."""
        known = paddle.where(ids < self.vocab_size, ids, paddle.full_like(ids, Vocabulary.unk_id))
        return self.embedding_dropout(table(known))
