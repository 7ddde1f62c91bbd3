"""EmoPrepend: reads a context with emotion hints, predicts the emotion, and conditions the reply on it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import CausalTransformerConfig, PretrainedConfig
from paddle_dialog.errors import UserError
from paddle_dialog.layers.masks import additive_mask, length_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.models.pointer_seq2seq import PointerSeq2Seq, PointerState
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS_OF
from paddle_dialog.tasks.empathetic.data.encoding import (
    CONFIDENCE_FLOOR,
    NO_EMOTION,
    Source,
    column_weights,
)
from paddle_dialog.tasks.empathetic.data.vocabulary import FIRST_EMOTION_ID, LISTENER_ID, smallest_vocabulary
from paddle_dialog.tasks.empathetic.network.loss import Outputs


class _Read(NamedTuple):
    """Contexts that the encoder has read."""

    outputs: Tensor  # of the encoder [B, S, H]
    memory: Any  # of the decoder
    past: Any  # of the decoder
    emotion: Tensor  # embedding of the emotion [B, E], which takes the place of the begin token's
    logits: Tensor  # of the emotions, by the encoder alone [B, C]
    answer: Tensor  # logits of the emotions, with those of the n-grams [B, C]


class EmoPrepend(PointerSeq2Seq):
    """A pointer-generator that reads a context with roles and hints and predicts its emotion.

    The decoder's input is the emotion's embedding followed by the reply: the emotion replaces the
    begin token, which carries no information. The emotion head learns from its own loss alone, so the probabilities
    that weigh the embedding pass no gradient.

    Offers the `StepModel` interface for batches of `Source`.

    Args:
        config: sizes and switches.
        vocab_size: V.

    Raises:
        UserError: V has no room for the reserved entries.
    """

    def __init__(self, config: EmpatheticConfig, vocab_size: int) -> None:
        smallest = smallest_vocabulary(EMOTIONS_OF[config.language])
        if vocab_size < smallest:
            raise UserError(
                f"a vocabulary of {vocab_size} is too small: {smallest} entries are reserved for "
                "roles and emotions; give more"
            )
        model = config.model
        assert not isinstance(model, PretrainedConfig)
        super().__init__(model, vocab_size, config.generator.pointer, config.generator.temperature)
        self._emotions = len(EMOTIONS_OF[config.language])
        # One stack reads context and reply, so the reply's words are marked with their role, as the context's are.
        self._reply_role = isinstance(model, CausalTransformerConfig)
        self.emotion_head = EmotionHead(
            self.encoder.output_size,
            self._emotions,
            config.emotion.head,
            model.dropout,
            config.emotion.ngram_buckets,
            config.emotion.encoder_weight,
            config.emotion.character_weight,
            config.emotion.small_talk,
        )

    def forward(  # type: ignore[override]
        self,
        words: Tensor,
        roles: Tensor | None,
        hints: Tensor | None,
        ngrams: Tensor | None,
        condition: Tensor,
        source_lengths: Tensor,
        target: Tensor,
        next_words: Tensor | None = None,
    ) -> Outputs:
        """Score every next word, given the true ones before it; arguments as the fields of `DialogueBatch`."""
        read = self._read(Source(words, roles, hints, ngrams, condition), source_lengths)
        logits, gate, attention = self.score(read.memory, read.past, target, read.emotion)
        parts = {}
        if gate is not None:
            parts = {"gate": gate, "attention": attention, "copy_ids": words}
        if self.training and next_words is not None:
            scores, following = self._score_context(read.outputs, next_words)
            parts |= {"context_logits": scores, "context_ids": following}
        return Outputs.of(logits, read.logits, **parts)

    def encode(self, source: Source, lengths: Tensor) -> PointerState:
        """Return the state before the first word, for sources of the given lengths [B]."""
        return self.read_contexts(source, lengths)[0]

    def read_contexts(self, source: Source, lengths: Tensor) -> tuple[PointerState, Tensor]:
        """Return the state before the first word, and probabilities [B, C] of the emotions; see `encode`.

        The probabilities do not depend on the condition.
        """
        read = self._read(source, lengths)
        state = self.begin(read.memory, read.past, source.words, read.emotion)
        return state, F.softmax(read.answer, axis=-1)

    def emotion_probabilities(self, source: Source, source_lengths: Tensor) -> Tensor:
        """Return probabilities [B, C] of the emotions; see `read_contexts`."""
        return self.read_contexts(source, source_lengths)[1]

    def attention_weights(self, source: Source, lengths: Tensor, target: Tensor) -> Tensor:
        """Return attention [B, T, S] of each target position over the context, for heat maps."""
        read = self._read(source, lengths)
        return self.score(read.memory, read.past, target, read.emotion)[2]

    def reply_states(self, state: PointerState, target: Tensor, sizes: Tensor) -> Tensor:
        """Return the decoder's mean output over each of K replies to one context, then its last output [K, 2 D].

        Args:
            state: of the context, before the first word.
            target: extended ids [K, T], begin token first.
            sizes: how many of them are real [K].
        """
        count = target.shape[0]
        state = self.reorder(state, paddle.zeros([count], dtype="int64"))
        hidden, _ = self.decoder(
            self.embed_target(target, state.begin), state.memory, state.past
        )  # [K, T, D]
        real = length_mask(sizes, target.shape[1]).astype(hidden.dtype).unsqueeze(-1)  # [K, T, 1]
        mean = (hidden * real).sum(1) / sizes.astype(hidden.dtype).unsqueeze(-1)  # [K, D]
        places = paddle.stack([paddle.arange(count), sizes - 1], axis=1)  # [K, 2]
        return paddle.concat([mean, paddle.gather_nd(hidden, places)], axis=1)

    def embed_source(self, source: Source) -> Tensor:
        """Embed word, role and hint of each position as the sum of their rows of the table, [B, S, E]."""
        marks = [self.known(source.words), *(ids for ids in (source.roles, source.hints) if ids is not None)]
        return self.embedding_dropout(self.embedding(paddle.stack(marks, axis=2)).sum(2))

    def embed_target(self, tokens: Tensor, begin: Tensor | None) -> Tensor:
        """Embed words [N, T] as [N, T, E], with the emotion's embedding [N, E] in place of the begin token's."""
        embedded = self.target_embedding(self.known(tokens))  # [N, T, E]
        if self._reply_role:
            embedded = embedded + self.embedding(paddle.full([1], LISTENER_ID, "int64"))
        return self.embedding_dropout(self.replace_begin(embedded, tokens, begin))

    def _read(self, source: Source, lengths: Tensor) -> _Read:
        real = length_mask(lengths, source.words.shape[1])  # [B, S]
        outputs, final = self.encoder(self.embed_source(source), lengths, real)  # [B, S, H]
        logits = self.emotion_head(outputs, real)  # [B, C]
        memory, past = self.decoder.prepare(outputs, real, final)
        answer = self.emotion_head.answer(logits, source.ngrams)  # [B, C]
        return _Read(outputs, memory, past, self._prepended(answer, source.condition), logits, answer)

    def _score_context(self, outputs: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [K, V] and ids [K] of the K words to learn, given outputs [B, S, H] and ids [B, S]."""
        places = paddle.nonzero(following.flatten()).squeeze(-1)  # [K]
        chosen = paddle.gather(outputs.flatten(0, 1), places)  # [K, H]
        return self.generator(self.dropout(chosen))[0], paddle.gather(following.flatten(), places)

    def _prepended(self, logits: Tensor, condition: Tensor) -> Tensor:
        """Embed the emotion as [B, E]: that of the condition [B], or the mean by the predicted probabilities."""
        weights = F.softmax(logits, axis=-1)  # [B, C]
        is_known = (condition != NO_EMOTION).astype(weights.dtype).unsqueeze(-1)  # [B, 1]
        chosen = F.one_hot(paddle.clip(condition, min=0), self._emotions)  # [B, C]
        weights = is_known * chosen + (1.0 - is_known) * weights
        ids = paddle.arange(FIRST_EMOTION_ID, FIRST_EMOTION_ID + self._emotions)  # [C]
        return paddle.matmul(weights, self.target_embedding(ids))


class EmotionHead(nn.Layer):
    """A bias-free linear map of the pooled encoder outputs, and a linear classifier of n-grams.

    The map is trained; the classifier (`emotion_classifier.py`) is fitted to the training
    texts before and stays fixed. `answer` combines the two.

    Args:
        width: of the encoder outputs H.
        emotions: how many there are, C.
        pooling: `cls` takes position 0; `attention` weighs all positions by a learned query.
        dropout: rate on the pooled features.
        ngram_buckets: rows of the n-gram table, 0 for none; row 0 is no feature.
        encoder_weight: factor of the encoder's logits in the answer, where there are n-grams.
        character_weight: weight of the n-grams of characters; those of words have 1.
        neutrality: whether the n-grams also recognise contexts without emotion.
    """

    def __init__(
        self,
        width: int,
        emotions: int,
        pooling: Literal["cls", "attention"],
        dropout: float = 0.0,
        ngram_buckets: int = 0,
        encoder_weight: float = 1.0,
        character_weight: float = 1.0,
        neutrality: bool = False,
    ) -> None:
        super().__init__()
        self.query = nn.Linear(width, 1, bias_attr=False) if pooling == "attention" else None
        self.has_ngrams = ngram_buckets > 0
        if self.has_ngrams:  # buffers, so that no optimiser changes them
            self.register_buffer("ngram_table", paddle.zeros([ngram_buckets, emotions]))
            self.register_buffer("ngram_idf", paddle.zeros([ngram_buckets]))
            if neutrality:
                self.register_buffer("ngram_plainness", paddle.zeros([ngram_buckets]))
        self.neutrality = neutrality
        self.encoder_weight = encoder_weight
        self.column_weights = column_weights(character_weight)  # [G]
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(width, emotions, bias_attr=False)

    def forward(self, outputs: Tensor, real: Tensor) -> Tensor:
        """Return the encoder's logits [B, C] of the emotions, which are trained.

        Args:
            outputs: of the encoder [B, S, H].
            real: bool [B, S].
        """
        pooled = outputs[:, 0] if self.query is None else self._pool(outputs, real)  # [B, H]
        return self.output(self.dropout(pooled))

    def answer(self, logits: Tensor, ngrams: Tensor | None) -> Tensor:
        """Combine the logits [B, C] of both classifiers, without a gradient.

        Args:
            logits: by the encoder [B, C].
            ngrams: buckets of each position, int64 [B, S, G]; 0 is none. None where there is no table.
        """
        if ngrams is None:
            return logits.detach()
        buckets = ngrams.flatten(1)  # [B, S * G]
        weights = self.ngram_idf[ngrams] * paddle.to_tensor(self.column_weights)  # [B, S, G]
        weights = F.normalize(weights.flatten(1), axis=-1)  # [B, S * G]
        rows = F.embedding(buckets, self.ngram_table)  # [B, S * G, C]
        by_ngrams = paddle.matmul(weights.unsqueeze(1), rows).squeeze(1)  # [B, C]
        joined = self.encoder_weight * logits.detach() + by_ngrams
        if not self.neutrality:
            return joined
        neutral = (weights * self.ngram_plainness[buckets]).sum(-1) - self.ngram_plainness[0]  # [B]
        confidence = CONFIDENCE_FLOOR + (1 - CONFIDENCE_FLOOR) * F.sigmoid(-neutral)  # [B]
        return joined * confidence.unsqueeze(-1)

    def _pool(self, outputs: Tensor, real: Tensor) -> Tensor:
        assert self.query is not None
        scores = self.query(outputs).squeeze(-1)  # [B, S]
        weights = F.softmax(scores + additive_mask(real, scores.dtype))  # [B, S]
        return paddle.matmul(weights.unsqueeze(1), outputs).squeeze(1)
