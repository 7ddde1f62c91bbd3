"""Models from source to target: a family's encoder and decoder between embeddings and an output layer."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.models import FamilyConfig, LstmAttentionConfig, ModelConfig
from paddle_dialog.layers.embeddings import TiedProjection, TokenEmbedding
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.layers.pointer_generator import PointerGenerator, extended_log_probs, first_positions
from paddle_dialog.layers.sampled_softmax import sampled_logits
from paddle_dialog.models.families import build_pair
from paddle_dialog.text.vocabulary import Vocabulary


class Seq2Seq(nn.Layer):
    """Scores every next token of a target.

    Args:
        config: the family and its sizes.
        vocab_size: number V of tokens, the same on both sides.
    """

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        table = (vocab_size, config.embedding_size)
        self.sampled = config.sampled_words
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

    def forward(
        self, source: Tensor, source_lengths: Tensor, target: Tensor, label: Tensor | None = None
    ) -> Tensor:
        """Return logits of every next token, given the true ones before it.

        Args:
            source: ids [B, S].
            source_lengths: real tokens of each source [B].
            target: ids [B, T], begin token first.
            label: ids [B, T], end token last, which training with sampled words needs.

        Returns:
            Logits [B, T, V]; in training with sampled words `sampled_logits` of the labels.
        """
        hidden = self.decode(source, source_lengths, target)[0]
        if not (self.training and self.sampled):
            return self.output(hidden)
        assert label is not None
        return sampled_logits(self.output, hidden, label, self.sampled)

    def next_scores(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Return logits [B, V] of the token after each target [B, T]; see `PrefixModel`."""
        return self.output(self.decode(source, lengths, target)[0][:, -1])

    def decode(self, source: Tensor, lengths: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return hidden [B, T, width] and attention [B, T, S] of known targets [B, T]."""
        real = length_mask(lengths, source.shape[1])  # [B, S]
        outputs, final = self.encoder(self.source_embedding(source), lengths, real)  # [B, S, H]
        return self.decoder(self.target_embedding(target), outputs, real, final)

    def attention_weights(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Return the attention [B, T, S] of each target position over the source, for heat maps."""
        return self.decode(source, lengths, target)[1]


class PointerSeq2Seq(nn.Layer):
    """Scores every next token of a target, which may be copied from the source.

    Tokens outside the vocabulary have the ids V, V + 1, … in the order in which they occur in their source. A network
    whose source is more than tokens, or whose target begins with more than a token, derives from this one.

    Args:
        config: the family and its sizes.
        vocab_size: V, the same on both sides.
        has_pointer: whether tokens can be copied; without it the vocabulary alone is scored.
        temperature: divides the vocabulary's logits.
    """

    def __init__(
        self, config: FamilyConfig, vocab_size: int, has_pointer: bool = True, temperature: float = 1.0
    ) -> None:
        super().__init__()
        table = (vocab_size, config.embedding_size)
        self.vocab_size = vocab_size
        self.embedding = TokenEmbedding(*table, scale=config.scale_embeddings)
        self.own_target_embedding = (
            None if config.share_embeddings else TokenEmbedding(*table, scale=config.scale_embeddings)
        )
        # The Transformers apply dropout to embeddings after adding positions.
        self.embedding_dropout = Dropout(config.dropout if isinstance(config, LstmAttentionConfig) else 0.0)
        self.encoder, self.decoder = build_pair(config)
        tied_to = self.target_embedding if config.tie_output else None
        self.generator = PointerGenerator(
            config.width,
            vocab_size,
            tied_to,
            has_pointer,
            temperature,
            config.output_bias,
            config.sampled_words,
        )
        self.dropout = Dropout(config.dropout)
        self.returns_log_probabilities = has_pointer

    @property
    def target_embedding(self) -> TokenEmbedding:
        """The decoder's table; a shared one is registered once, as `embedding`."""
        return self.embedding if self.own_target_embedding is None else self.own_target_embedding

    def forward(
        self, source: Tensor, source_lengths: Tensor, target: Tensor, label: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Score every next token, given the true ones before it.

        Args:
            source: extended ids [B, S].
            source_lengths: [B].
            target: extended ids [B, T], begin token first.
            label: extended ids [B, T], end token last, which training with sampled words needs.

        Returns:
            Logits [B, T, V], in training with sampled words `sampled_logits` of the labels; gate logits [B, T], None
            without a pointer; attention [B, T, S]; and the source's ids [B, S].
        """
        hidden, attention = self.decode(source, source_lengths, target)
        logits, gate = self.generator(self.dropout(hidden), label)
        return logits, gate, attention, source

    def decode(self, source: Any, lengths: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return hidden [B, T, width] and attention [B, T, S] of known targets [B, T]."""
        real = length_mask(lengths, source.shape[1])  # [B, S]
        outputs, final = self.encoder(self.embed_source(source), lengths, real)  # [B, S, H]
        return self.decoder(self.embed_target(target), outputs, real, final)

    def next_scores(self, source: Any, lengths: Tensor, target: Tensor) -> Tensor:
        """Return scores of the token after each target [B, T]; see `PrefixModel`.

        Returns:
            Log-probabilities [B, V + X] with X tokens outside the vocabulary; logits [B, V] without a pointer.
        """
        hidden, attention = self.decode(source, lengths, target)
        logits, gate = self.generator(self.dropout(hidden[:, -1]))  # [B, V], [B]
        if gate is None:
            return logits
        copy_ids = self.copy_ids(source)  # [B, S]
        extra = max(int(copy_ids.max()) + 1 - self.vocab_size, 0)
        first = first_positions(copy_ids)
        return extended_log_probs(logits, gate, attention[:, -1], copy_ids, first, extra)

    def attention_weights(self, source: Any, lengths: Tensor, target: Tensor) -> Tensor:
        """Return the attention [B, T, S] of each target position over the source, for heat maps."""
        return self.decode(source, lengths, target)[1]

    def copy_ids(self, source: Any) -> Tensor:
        """Return the extended ids [B, S] that can be copied from a source."""
        return source

    def embed_source(self, source: Any) -> Tensor:
        """Embed sources [B, S] as [B, S, E]."""
        return self.embedding_dropout(self.embedding(self.known(source)))

    def embed_target(self, tokens: Tensor) -> Tensor:
        """Embed targets [B, T] as [B, T, E]."""
        return self.embedding_dropout(self.target_embedding(self.known(tokens)))

    def known(self, ids: Tensor) -> Tensor:
        """Return extended ids of any shape; those beyond the vocabulary become unknown."""
        return paddle.where(ids < self.vocab_size, ids, paddle.full_like(ids, Vocabulary.unk_id))
