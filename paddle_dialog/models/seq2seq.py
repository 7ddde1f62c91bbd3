"""A model from source to target: a family's encoder and decoder between embeddings and an output layer."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddle import Tensor, nn

from paddle_dialog.config.models import ModelConfig
from paddle_dialog.layers.embeddings import TiedProjection, TokenEmbedding
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.models.families import build_pair
from paddle_dialog.models.pair import gather_rows


class Seq2SeqState(NamedTuple):
    """The state of a decoding step."""

    memory: Any  # the source as the decoder sees it
    past: Any  # the target so far


class Seq2Seq(nn.Layer):
    """Offers `StepModel` with logits.

    Args:
        config: the family and its sizes.
        vocab_size: number V of tokens, the same on both sides.
    """

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        table = (vocab_size, config.embedding_size)
        self.source_embedding = TokenEmbedding(*table, scale=config.scale_embeddings)
        self.own_target_embedding = (
            None if config.share_embeddings else TokenEmbedding(*table, scale=config.scale_embeddings)
        )
        self.encoder, self.decoder = build_pair(config)
        self.output = (
            TiedProjection(self.target_embedding, config.output_bias)
            if config.tie_output
            else nn.Linear(config.width, vocab_size, bias_attr=config.output_bias)
        )

    @property
    def target_embedding(self) -> TokenEmbedding:
        """The decoder's table; a shared one is registered once, under the source's name."""
        return self.source_embedding if self.own_target_embedding is None else self.own_target_embedding

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Return logits of every next token, given the true ones before it.

        Args:
            source: ids [B, S].
            source_lengths: real tokens of each source [B].
            target: ids [B, T], begin token first.

        Returns:
            Logits [B, T, V].
        """
        return self.output(self._decode(source, source_lengths, target)[0])

    def encode(self, source: Tensor, source_lengths: Tensor) -> Seq2SeqState:
        """Return the state before the first target token, for a source [B, S] of the given lengths [B]."""
        real = length_mask(source_lengths, source.shape[1])  # [B, S]
        outputs, final = self.encoder(self.source_embedding(source), source_lengths, real)  # [B, S, H]
        return Seq2SeqState(*self.decoder.prepare(outputs, real, final))

    def step(self, token: Tensor, state: Seq2SeqState) -> tuple[Tensor, Seq2SeqState]:
        """Return logits [N, V] after one more token [N], and the new state."""
        hidden, _, past = self.decoder.step(self.target_embedding(token), *state)  # [N, width]
        return self.output(hidden), state._replace(past=past)

    def reorder(self, state: Seq2SeqState, index: Tensor) -> Seq2SeqState:
        """Return the state of the rows `index` [M]."""
        return gather_rows(state, index)

    def reorder_within(self, state: Seq2SeqState, index: Tensor) -> Seq2SeqState:
        """Reorder rows that stay with their input; what belongs to the source is not copied."""
        return state._replace(past=gather_rows(state.past, index))

    def attention_weights(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Return attention [B, T, S] of each target position over the source, for heat maps."""
        return self._decode(source, source_lengths, target)[1]

    def _decode(self, source: Tensor, lengths: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return hidden [B, T, width] and attention [B, T, S] of known targets [B, T]."""
        return self.decoder(self.target_embedding(target), *self.encode(source, lengths))
