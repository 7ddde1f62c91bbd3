"""Source to target with copying: a family's encoder and decoder, and a pointer-generator as their output layer."""

from __future__ import annotations

from typing import Any, NamedTuple

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.models import FamilyConfig, LstmAttentionConfig
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
    begin: Tensor | None  # takes the place of the begin token's embedding [N, E]
    copy_ids: Tensor  # extended ids of the source [N, S]
    first: Tensor  # the first position of each one's token [N, S]
    extra: Tensor  # ids beyond the vocabulary, the same number in every row [N]


class PointerSeq2Seq(nn.Layer):
    """Offers `StepModel` with log-probabilities over an extended vocabulary.

    Tokens outside the vocabulary have the ids V, V + 1, … in the order in which they occur in their source. A network
    whose source is more than tokens, or whose target begins with more than a token, derives from this one.

    Args:
        config: the family and its sizes.
        vocab_size: V, the same on both sides.
        has_pointer: whether tokens can be copied; without it `step` returns logits of the vocabulary alone.
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
            config.width, vocab_size, tied_to, has_pointer, temperature, bias=config.output_bias
        )
        self.dropout = Dropout(config.dropout)
        self.returns_log_probabilities = has_pointer

    @property
    def target_embedding(self) -> TokenEmbedding:
        """The decoder's table; a shared one is registered once, as `embedding`."""
        return self.embedding if self.own_target_embedding is None else self.own_target_embedding

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        """Score every next token, given the true ones before it.

        Args:
            source: extended ids [B, S].
            source_lengths: [B].
            target: extended ids [B, T], begin token first.

        Returns:
            Logits [B, T, V], gate logits [B, T], attention [B, T, S] and the source's ids [B, S].
        """
        logits, gate, attention = self.score(*self.read(source, source_lengths), target)
        return logits, gate, attention, source

    def read(self, source: Tensor, lengths: Tensor) -> tuple[Any, Any]:
        """Return the decoder's memory and past of sources [B, S] of the given lengths [B]."""
        real = length_mask(lengths, source.shape[1])  # [B, S]
        outputs, final = self.encoder(self.embed_source(source), lengths, real)  # [B, S, H]
        return self.decoder.prepare(outputs, real, final)

    def score(
        self, memory: Any, past: Any, target: Tensor, begin: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Score every next token of targets.

        Args:
            memory: of the decoder.
            past: of the decoder.
            target: extended ids [B, T], begin token first.
            begin: takes the place of the begin token's embedding [B, E].

        Returns:
            Logits [B, T, V], gate logits [B, T] (None without a pointer) and attention over the source [B, T, S].
        """
        hidden, attention = self.decoder(self.embed_target(target, begin), memory, past)
        logits, gate = self.generator(self.dropout(hidden))
        return logits, gate, attention

    def encode(self, source: Tensor, lengths: Tensor) -> PointerState:
        """Return the state before the first token, for sources [B, S] of the given lengths [B]."""
        return self.begin(*self.read(source, lengths), source)

    def begin(self, memory: Any, past: Any, copy_ids: Tensor, begin: Tensor | None = None) -> PointerState:
        """Return the state before the first token; `copy_ids` are the extended ids of the sources [B, S]."""
        extra = paddle.clip(copy_ids.max() + 1 - self.vocab_size, min=0)  # []
        extras = extra.reshape([1]).expand([copy_ids.shape[0]])  # [B]
        return PointerState(memory, past, begin, copy_ids, first_positions(copy_ids), extras)

    def step(self, token: Tensor, state: PointerState) -> tuple[Tensor, PointerState]:
        """Score after one more token [N]; log-probabilities [N, V + X], logits [N, V] without a pointer."""
        embedded = self.embed_target(token.unsqueeze(1), state.begin).squeeze(1)  # [N, E]
        hidden, attention, past = self.decoder.step(embedded, state.memory, state.past)
        logits, gate = self.generator(self.dropout(hidden))  # [N, V], [N]
        state = state._replace(past=past)
        if gate is None:
            return logits, state
        extra = int(state.extra[0])
        return extended_log_probs(logits, gate, attention, state.copy_ids, state.first, extra), state

    def reorder(self, state: PointerState, index: Tensor) -> PointerState:
        """Return the state of the rows `index` [M]."""
        return gather_rows(state, index)

    def reorder_within(self, state: PointerState, index: Tensor) -> PointerState:
        """Reorder rows that stay with their sources, which need not move."""
        return state._replace(past=gather_rows(state.past, index))

    def attention_weights(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Return the attention [B, T, S] of each target position over the source, for heat maps."""
        return self.score(*self.read(source, lengths), target)[2]

    def embed_source(self, source: Tensor) -> Tensor:
        """Embed sources [B, S] as [B, S, E]."""
        return self.embedding_dropout(self.embedding(self.known(source)))

    def embed_target(self, tokens: Tensor, begin: Tensor | None) -> Tensor:
        """Embed targets [N, T] as [N, T, E], with `begin` [N, E] in place of the begin token where it is given."""
        embedded = self.target_embedding(self.known(tokens))  # [N, T, E]
        return self.embedding_dropout(self.replace_begin(embedded, tokens, begin))

    def replace_begin(self, embedded: Tensor, tokens: Tensor, begin: Tensor | None) -> Tensor:
        """Put `begin` [N, E] in place of the begin token's embedding in embedded tokens [N, T, E]."""
        if begin is None:
            return embedded
        first = (tokens == Vocabulary.bos_id).astype(embedded.dtype).unsqueeze(-1)  # [N, T, 1]
        return embedded * (1.0 - first) + begin.unsqueeze(1) * first

    def known(self, ids: Tensor) -> Tensor:
        """Return extended ids of any shape; those beyond the vocabulary become unknown."""
        return paddle.where(ids < self.vocab_size, ids, paddle.full_like(ids, Vocabulary.unk_id))
