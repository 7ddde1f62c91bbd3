"""EmoPrepend: reads a context with emotion hints, predicts the emotion, and conditions the reply on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import CausalTransformerConfig, LstmAttentionConfig
from paddle_dialog.errors import UserError
from paddle_dialog.layers.embeddings import TokenEmbedding
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.layers.pointer_generator import PointerGenerator, extended_log_probs, first_positions
from paddle_dialog.models.families import build_pair
from paddle_dialog.models.pair import gather_rows
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.emotions import EMOTIONS_OF
from tasks.empathetic.data.encoding import HINT, NEXT, NGRAMS, ROLE, WORD
from tasks.empathetic.data.vocabulary import FIRST_EMOTION_ID, LISTENER_ID, smallest_vocabulary
from tasks.empathetic.network.adversarial import Adversary
from tasks.empathetic.network.emotion_head import EmotionHead
from tasks.empathetic.network.outputs import Outputs


class EmoState(NamedTuple):
    """The state of a decoding step; the first axis of all tensors is the row."""

    memory: Any  # the context as the decoder sees it
    past: Any  # the reply so far
    emotion: Tensor | None  # [N, E], what takes the place of the begin token
    copy_ids: Tensor  # extended ids of the context [N, S]
    first: Tensor  # the first position of each one's word [N, S]
    extra: Tensor  # ids beyond the vocabulary, the same number in every row [N]


class EmoPrepend(nn.Layer):
    """Encoder, emotion head, decoder and pointer-generator over one embedding table.

    The decoder's input is the emotion's embedding followed by the reply: the emotion replaces the
    begin token, which carries no information. The emotion head learns from its own loss alone, so the probabilities
    that weigh the embedding pass no gradient.

    Offers the `StepModel` interface for packed sources [B, S, k], see `tasks.empathetic.data.encoding`.

    Args:
        config: sizes and switches.
        vocab_size: V.

    Raises:
        UserError: V has no room for the reserved entries.
    """

    def __init__(self, config: EmpatheticConfig, vocab_size: int) -> None:
        super().__init__()
        self._emotions = len(EMOTIONS_OF[config.language])
        smallest = smallest_vocabulary(EMOTIONS_OF[config.language])
        if vocab_size < smallest:
            raise UserError(
                f"a vocabulary of {vocab_size} is too small: {smallest} entries are reserved for "
                "roles and emotions; give more"
            )
        model, self._emotion = config.model, config.emotion
        self._learns_contexts = config.generator.context_weight > 0
        # One stack reads context and reply, so the reply's words are marked with their role, as the context's are.
        self._reply_role = isinstance(model, CausalTransformerConfig) and config.emotion.roles
        table = (vocab_size, model.embedding_size)
        self.vocab_size = vocab_size
        self.embedding = TokenEmbedding(*table, scale=model.scale_embeddings)
        self.own_target_embedding = (
            None if model.share_embeddings else TokenEmbedding(*table, scale=model.scale_embeddings)
        )
        # The Transformers apply dropout to embeddings after adding positions.
        self.embedding_dropout = Dropout(model.dropout if isinstance(model, LstmAttentionConfig) else 0.0)
        self.encoder, self.decoder = build_pair(model)
        self.generator = PointerGenerator(
            model.width,
            vocab_size,
            self.target_embedding if model.tie_output else None,
            config.generator.pointer,
            config.generator.temperature,
            bias=model.output_bias,
        )
        self.emotion_head = EmotionHead(
            self.encoder.output_size,
            self._emotions,
            config.emotion.head,
            model.dropout,
            config.emotion.ngram_buckets,
            config.emotion.encoder_share,
            config.emotion.character_weight,
            config.emotion.small_talk,
        )
        self.adversary = None
        if config.adversarial.is_active:
            self.adversary = Adversary(
                config.adversarial, model.embedding_size, self.encoder.output_size, vocab_size
            )
        self.dropout = Dropout(model.dropout)
        self.returns_log_probabilities = config.generator.pointer

    @property
    def target_embedding(self) -> TokenEmbedding:
        """The decoder's table; a shared one is registered once, as `embedding`."""
        return self.embedding if self.own_target_embedding is None else self.own_target_embedding

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Outputs:
        """Score every next word, given the true ones before it.

        Args:
            source: packed [B, S, k].
            source_lengths: [B].
            target: extended ids [B, T], begin token first.
        """
        outputs, memory, past, emotion, emotion_logits = self._read(source, source_lengths)
        hidden, attention = self.decoder(self._embed_reply(target, emotion), memory, past)
        logits, gate = self.generator(self.dropout(hidden))  # [B, T, V], [B, T]
        given = {}
        if gate is not None:
            given = {"gate": gate, "attention": attention, "copy_ids": source[:, :, WORD]}
        if self.training and self._learns_contexts:
            scores, following = self._score_context(outputs, source[:, :, NEXT])
            given |= {"context_logits": scores, "context_ids": following}
        scored = Outputs.of(logits, emotion_logits, **given)
        if not self.training or self.adversary is None:
            return scored
        seen = length_mask(source_lengths, source.shape[1])  # [B, S]
        verdicts = self.adversary(scored.reply, target, outputs, seen, self.target_embedding.weight)
        return scored._replace(verdicts=verdicts)

    def encode(self, source: Tensor, source_lengths: Tensor) -> EmoState:
        """Return the state before the first word, for a packed source [B, S, k] of the given lengths [B]."""
        _, memory, past, emotion, _ = self._read(source, source_lengths)
        copy_ids = source[:, :, WORD]  # [B, S]
        extra = paddle.clip(copy_ids.max() + 1 - self.vocab_size, min=0)  # []
        extras = extra.reshape([1]).expand([source.shape[0]])  # [B]
        return EmoState(memory, past, emotion, copy_ids, first_positions(copy_ids), extras)

    def step(self, token: Tensor, state: EmoState) -> tuple[Tensor, EmoState]:
        """Score after one more word [N], and the new state.

        Returns:
            Log-probabilities over the extended vocabulary [N, V + X] with a pointer, else logits [N, V].
        """
        embedded = self._embed_reply(token.unsqueeze(1), state.emotion).squeeze(1)  # [N, E]
        hidden, attention, past = self.decoder.step(embedded, state.memory, state.past)
        logits, gate = self.generator(self.dropout(hidden))  # [N, V], [N]
        state = state._replace(past=past)
        if gate is None:
            return logits, state
        extra = int(state.extra[0])
        return extended_log_probs(logits, gate, attention, state.copy_ids, state.first, extra), state

    def reorder(self, state: EmoState, index: Tensor) -> EmoState:
        """Return the state of the rows `index` [M]."""
        return gather_rows(state, index)

    def reorder_within(self, state: EmoState, index: Tensor) -> EmoState:
        """Reorder rows that stay with their contexts, which need not move."""
        return state._replace(past=gather_rows(state.past, index))

    def emotion_probabilities(self, source: Tensor, source_lengths: Tensor) -> Tensor:
        """Return probabilities [B, 32] of the emotions, whatever emotion the source gives."""
        logits = self._read(source, source_lengths)[-1]  # [B, 32]
        return F.softmax(self.emotion_head.answer(logits, source[:, :, NGRAMS:]), axis=-1)

    def attention_weights(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Return attention [B, T, S] of each target position over the context, for heat maps."""
        _, memory, past, emotion, _ = self._read(source, source_lengths)
        return self.decoder(self._embed_reply(target, emotion), memory, past)[1]

    def reply_states(self, source: Tensor, source_lengths: Tensor, target: Tensor, sizes: Tensor) -> Tensor:
        """Return the decoder's mean output over each of K replies to one context, then its last output [K, 2 D].

        Args:
            source: packed [1, S, k].
            source_lengths: its length [1].
            target: extended ids [K, T], begin token first.
            sizes: how many of them are real [K].
        """
        count = target.shape[0]
        _, memory, past, emotion, _ = self._read(
            source.expand([count, -1, -1]), source_lengths.expand([count])
        )
        hidden, _ = self.decoder(self._embed_reply(target, emotion), memory, past)  # [K, T, D]
        real = length_mask(sizes, target.shape[1]).astype(hidden.dtype).unsqueeze(-1)  # [K, T, 1]
        mean = (hidden * real).sum(1) / sizes.astype(hidden.dtype).unsqueeze(-1)  # [K, D]
        places = paddle.stack([paddle.arange(count), sizes - 1], axis=1)  # [K, 2]
        return paddle.concat([mean, paddle.gather_nd(hidden, places)], axis=1)

    def copy_probabilities(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor | None:
        """Return 1 - p_gen [B, T] at each target position; None without a pointer."""
        _, memory, past, emotion, _ = self._read(source, source_lengths)
        hidden = self.decoder(self._embed_reply(target, emotion), memory, past)[0]
        gate = self.generator(self.dropout(hidden))[1]
        return None if gate is None else F.sigmoid(-gate)

    def _score_context(self, outputs: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [K, V] and ids [K] of the K words to learn, given outputs [B, S, H] and ids [B, S]."""
        places = paddle.nonzero(following.flatten()).squeeze(-1)  # [K]
        chosen = paddle.gather(outputs.flatten(0, 1), places)  # [K, H]
        return self.generator(self.dropout(chosen))[0], paddle.gather(following.flatten(), places)

    def _read(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Any, Any, Tensor | None, Tensor]:
        """Read contexts.

        Returns:
            The encoder's outputs [B, S, H], memory and past of the decoder, the emotion's embedding [B, E], and the
            encoder's emotion logits [B, 32].
        """
        real = length_mask(lengths, source.shape[1])  # [B, S]
        outputs, final = self.encoder(self._embed_context(source), lengths, real)  # [B, S, H]
        emotion_logits = self.emotion_head(outputs, real)  # [B, 32]
        memory, past = self.decoder.prepare(outputs, real, final)
        answer = self.emotion_head.answer(emotion_logits, source[:, :, NGRAMS:])  # [B, 32]
        emotion = self._prepended(answer, source[:, 0, HINT])
        return outputs, memory, past, emotion, emotion_logits

    def _embed_context(self, source: Tensor) -> Tensor:
        """Embed word, role and hint of each position as the sum of their rows of the table, [B, S, E]."""
        marks = [self._known(source[:, :, WORD])]
        if self._emotion.roles:
            marks.append(source[:, :, ROLE])
        if self._emotion.hints:
            hints = source[:, :, HINT].clone()
            hints[:, 0] = 0  # the emotion stands there
            marks.append(hints)
        return self.embedding_dropout(self.embedding(paddle.stack(marks, axis=2)).sum(2))

    def _prepended(self, logits: Tensor, given: Tensor) -> Tensor | None:
        """Embed the emotion as [B, E]: the given one, an id [B], or the predicted one where that is 0."""
        if self._emotion.prepend == "none":
            return None
        if self._emotion.prepend_form == "weighted":
            weights = F.softmax(logits, axis=-1)  # [B, 32]
        else:
            weights = F.one_hot(logits.argmax(-1), self._emotions)
        is_given = (given > 0).astype(weights.dtype).unsqueeze(-1)  # [B, 1]
        chosen = F.one_hot(paddle.clip(given - FIRST_EMOTION_ID, min=0), self._emotions)  # [B, 32]
        weights = is_given * chosen + (1.0 - is_given) * weights
        ids = paddle.arange(FIRST_EMOTION_ID, FIRST_EMOTION_ID + self._emotions)  # [32]
        return paddle.matmul(weights, self.target_embedding(ids))

    def _embed_reply(self, tokens: Tensor, emotion: Tensor | None) -> Tensor:
        """Embed words [N, T] as [N, T, E], with the emotion in place of the begin token."""
        embedded = self.target_embedding(self._known(tokens))  # [N, T, E]
        if self._reply_role:
            embedded = embedded + self.embedding(paddle.full([1], LISTENER_ID, "int64"))
        if emotion is not None:
            first = (tokens == Vocabulary.bos_id).astype(embedded.dtype).unsqueeze(-1)  # [N, T, 1]
            embedded = embedded * (1.0 - first) + emotion.unsqueeze(1) * first
        return self.embedding_dropout(embedded)

    def _known(self, ids: Tensor) -> Tensor:
        """Return ids inside the vocabulary; the others become unknown."""
        return paddle.where(ids < self.vocab_size, ids, paddle.full_like(ids, Vocabulary.unk_id))
