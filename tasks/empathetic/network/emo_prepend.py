"""EmoPrepend, which reads a context, predicts the emotion and conditions the reply on it; and its training loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import CausalTransformerConfig, PretrainedConfig
from paddle_dialog.data.batching import pad_batch
from paddle_dialog.decoding.paddle_steps import PrefixModel, PrefixState
from paddle_dialog.decoding.search import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.layers.masks import additive_mask, length_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.models.seq2seq import PointerSeq2Seq
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS_OF
from paddle_dialog.tasks.empathetic.data.encoding import (
    CONFIDENCE_FLOOR,
    FIRST_EMOTION_ID,
    LISTENER_ID,
    NO_EMOTION,
    Source,
    column_weights,
    smallest_vocabulary,
)
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.losses import PointerCrossEntropy, SequenceCrossEntropy, mean_of


class Outputs(NamedTuple):
    """Scores of a batch; a part that this network or this mode does not have is an empty tensor."""

    logits: Tensor  # of the reply's words [B, T, V]
    gate: Tensor  # logits of generating over copying [B, T], of a network with a pointer
    attention: Tensor  # over the context [B, T, S], with a pointer
    copy_ids: Tensor  # the context's extended ids [B, S], with a pointer
    # Of the K context words to learn [K, V], in training, where contexts are learned.
    context_logits: Tensor
    context_ids: Tensor  # of these words [K]
    emotion: Tensor  # logits [B, C] of the encoder's classifier

    @classmethod
    def of(cls, logits: Tensor, emotion: Tensor, **others: Tensor) -> Outputs:
        """Return outputs of which those that are not given are empty."""
        fields = dict.fromkeys(cls._fields, paddle.zeros([0])) | others
        return cls(**{**fields, "logits": logits, "emotion": emotion})

    @property
    def reply(self) -> tuple[Tensor, ...]:
        """The scores of the reply: logits; with a pointer also gate, attention and the context's ids."""
        return self[:4] if is_given(self.gate) else self[:1]


def is_given(output: Tensor) -> bool:
    """Return whether an output is there."""
    return output.shape != [0]


class _Read(NamedTuple):
    """Contexts that the encoder has read."""

    outputs: Tensor  # of the encoder [B, S, H]
    real: Tensor  # bool [B, S]
    final: Any  # what else the encoder returned
    emotion: Tensor  # embedding of the emotion [B, E], which takes the place of the begin token's
    logits: Tensor  # of the emotions, by the encoder alone [B, C]
    combined: Tensor  # logits of the emotions, with those of the n-grams [B, C]


class EmoPrepend(PointerSeq2Seq):
    """A pointer-generator that reads a context with roles and hints and predicts its emotion.

    The decoder's input is the emotion's embedding followed by the reply: the emotion replaces the
    begin token, which carries no information. The emotion head learns from its own loss alone, so the probabilities
    that weigh the embedding pass no gradient.

    Args:
        config: sizes and switches.
        vocab_size: V.
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
        self._likeliest = config.emotion.prepend_form == "argmax"
        # One stack reads context and reply, so the reply's words are marked with their role, as the context's are.
        self._reply_role = isinstance(model, CausalTransformerConfig)
        self.emotion_head = EmotionHead(config, self.encoder.output_size, model.dropout)

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
        label: Tensor | None = None,
    ) -> Outputs:
        """Score every next word, given the true ones before it; arguments as the fields of `DialogueBatch`."""
        read = self._read(Source(words, roles, hints, ngrams, condition), source_lengths)
        hidden, attention = self._decode(read, target)
        logits, gate = self.generator(self.dropout(hidden), label)
        parts = {}
        if gate is not None:
            parts = {"gate": gate, "attention": attention, "copy_ids": words}
        if self.training and next_words is not None:
            scores, following = self._score_context(read.outputs, next_words)
            parts |= {"context_logits": scores, "context_ids": following}
        return Outputs.of(logits, read.logits, **parts)

    def decode(self, source: Source, lengths: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return hidden [B, T, D] and attention [B, T, S] of known replies [B, T], begin token first."""
        return self._decode(self._read(source, lengths), target)

    def emotion_probabilities(self, source: Source, source_lengths: Tensor) -> Tensor:
        """Return probabilities [B, C] of the emotions, which do not depend on the condition."""
        return F.softmax(self._read(source, source_lengths).combined, axis=-1)

    def copy_ids(self, source: Source) -> Tensor:
        """Return the extended ids [B, S] that can be copied from a context."""
        return source.words

    def embed_source(self, source: Source) -> Tensor:
        """Embed word, role and hint of each position as the sum of their rows of the table, [B, S, E]."""
        marks = [self.known(source.words), *(ids for ids in (source.roles, source.hints) if ids is not None)]
        return self.embedding_dropout(self.embedding(paddle.stack(marks, axis=2)).sum(2))

    def _decode(self, read: _Read, target: Tensor) -> tuple[Tensor, Tensor]:
        """Decode replies [B, T], with the emotion's embedding in place of the begin token's."""
        embedded = self.target_embedding(self.known(target))  # [B, T, E]
        if self._reply_role:
            embedded = embedded + self.embedding(paddle.full([1], LISTENER_ID, "int64"))
        first = (target == Vocabulary.bos_id).astype(embedded.dtype).unsqueeze(-1)  # [B, T, 1]
        embedded = embedded * (1.0 - first) + read.emotion.unsqueeze(1) * first
        return self.decoder(self.embedding_dropout(embedded), read.outputs, read.real, read.final)

    def _read(self, source: Source, lengths: Tensor) -> _Read:
        real = length_mask(lengths, source.words.shape[1])  # [B, S]
        outputs, final = self.encoder(self.embed_source(source), lengths, real)  # [B, S, H]
        logits = self.emotion_head(outputs, real)  # [B, C]
        combined = self.emotion_head.combine(logits, source.ngrams)  # [B, C]
        return _Read(outputs, real, final, self._prepended(combined, source.condition), logits, combined)

    def _score_context(self, outputs: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [K, V] and ids [K] of the K words to learn, given outputs [B, S, H] and ids [B, S]."""
        places = paddle.nonzero(following.flatten()).squeeze(-1)  # [K]
        chosen = paddle.gather(outputs.flatten(0, 1), places)  # [K, H]
        label = paddle.gather(following.flatten(), places)  # [K]
        return self.generator(self.dropout(chosen), label)[0], label

    def _prepended(self, logits: Tensor, condition: Tensor) -> Tensor:
        """Embed the emotion as [B, E]: that of the condition [B], or the predicted one."""
        weights = F.softmax(logits, axis=-1)  # [B, C]
        if self._likeliest:
            weights = F.one_hot(logits.argmax(axis=-1), self._emotions)
        is_known = (condition != NO_EMOTION).astype(weights.dtype).unsqueeze(-1)  # [B, 1]
        chosen = F.one_hot(paddle.clip(condition, min=0), self._emotions)  # [B, C]
        weights = is_known * chosen + (1.0 - is_known) * weights
        ids = paddle.arange(FIRST_EMOTION_ID, FIRST_EMOTION_ID + self._emotions)  # [C]
        return paddle.matmul(weights, self.target_embedding(ids))


class PaddleEmoPrepend(PrefixModel):
    """Answers through Paddle as `NumpyEmoPrepend` does in NumPy."""

    network: EmoPrepend

    def read_contexts(self, source: Source, lengths: np.ndarray) -> tuple[PrefixState, np.ndarray]:
        """Return the state before the first word, and probabilities [B, C] of the emotions."""
        return self.encode(source, lengths), self.call(self.network.emotion_probabilities, source, lengths)

    def read_replies(
        self, state: PrefixState, replies: Sequence[Sequence[int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Read replies to one context; arguments and result as for `NumpyCausalEmoPrepend.read_replies`."""
        rows = np.zeros(len(replies), dtype=np.int64)
        log_probs = text_log_probs(
            self, state.source.words, state.lengths, replies, rows.tolist(), state
        )  # [K]
        target, sizes = pad_batch([np.array([Vocabulary.bos_id, *reply]) for reply in replies], 0)
        read = self.reorder(state, rows)
        hidden = self.call(lambda *inputs: self.network.decode(*inputs)[0], read.source, read.lengths, target)
        real = np.arange(hidden.shape[1]) < sizes[:, None]  # [K, T]
        means = (hidden * real[..., None]).sum(axis=1) / sizes[:, None].astype(np.float32)  # [K, D]
        return log_probs, np.concatenate([means, hidden[np.arange(len(sizes)), sizes - 1]], axis=1)


class EmotionHead(nn.Layer):
    """A bias-free linear map of the pooled encoder outputs, and a linear classifier of n-grams.

    The map is trained; the classifier (`data.examples.fit_emotions`) is fitted to the training
    texts before and stays fixed. `combine` joins the two.

    Args:
        config: of the network; with `small_talk` the n-grams also recognise contexts without emotion.
        width: of the encoder outputs H.
        dropout: rate on the pooled features.
    """

    def __init__(self, config: EmpatheticConfig, width: int, dropout: float) -> None:
        super().__init__()
        settings, emotions = config.emotion, len(EMOTIONS_OF[config.language])
        attends = settings.head == "attention"  # else position 0 is taken
        self.query = nn.Linear(width, 1, bias_attr=False) if attends else None
        if settings.ngram_buckets:  # buffers, so that no optimiser changes them; row 0 is no feature
            self.register_buffer("ngram_table", paddle.zeros([settings.ngram_buckets, emotions]))
            self.register_buffer("ngram_idf", paddle.zeros([settings.ngram_buckets]))
            if settings.small_talk:
                self.register_buffer("ngram_plainness", paddle.zeros([settings.ngram_buckets]))
        self.recognises_neutral = settings.small_talk
        self.encoder_weight = settings.encoder_weight
        self.column_weights = column_weights(settings.character_weight)  # [G]
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

    def combine(self, logits: Tensor, ngrams: Tensor | None) -> Tensor:
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
        if not self.recognises_neutral:
            return joined
        neutral = (weights * self.ngram_plainness[buckets]).sum(-1) - self.ngram_plainness[0]  # [B]
        confidence = CONFIDENCE_FLOOR + (1 - CONFIDENCE_FLOOR) * F.sigmoid(-neutral)  # [B]
        return joined * confidence.unsqueeze(-1)

    def _pool(self, outputs: Tensor, real: Tensor) -> Tensor:
        assert self.query is not None
        scores = self.query(outputs).squeeze(-1)  # [B, S]
        weights = F.softmax(scores + additive_mask(real, scores.dtype))  # [B, S]
        return paddle.matmul(weights.unsqueeze(1), outputs).squeeze(1)


class EmpatheticLoss(nn.Layer):
    """Mean nll per word, plus λ times the mean nll of the annotated emotions.

    If contexts are learned, their words are in that mean, each with its weight, and never smoothed.

    `token_nll` [B, T] keeps the negative log-likelihoods of the last call, masked and never smoothed.

    Args:
        label_smoothing: ε, of `SequenceCrossEntropy`; with a pointer of `PointerCrossEntropy`.
        emotion_weight: λ.
        context_weight: weight of a context's word, if contexts are learned; one of the reply has 1.
        sampled: as for `SequenceCrossEntropy`.
    """

    token_nll: Tensor

    def __init__(
        self,
        label_smoothing: float = 0.0,
        emotion_weight: float = 1.0,
        context_weight: float = 0.0,
        sampled: bool = False,
    ) -> None:
        super().__init__()
        self.context_weight = context_weight
        self.emotion_weight = emotion_weight
        self.sampled = sampled
        self._generated = SequenceCrossEntropy(label_smoothing, sampled)
        self._copied = PointerCrossEntropy(label_smoothing, sampled)

    def forward(self, *parts: Tensor, emotion: Tensor, label: Tensor, mask: Tensor) -> Tensor:
        """Return the loss, a scalar.

        Args:
            parts: of `Outputs`.
            emotion: [B], see `DialogueBatch`, as all that follow.
            label: [B, T].
            mask: [B, T].
        """
        outputs = Outputs(*parts)
        criterion: Any = self._copied if is_given(outputs.gate) else self._generated
        total, tokens = criterion.total(*outputs.reply, label, mask), mask.sum()
        self.token_nll = criterion.token_nll
        if is_given(outputs.context_logits):
            following = outputs.context_ids.unsqueeze(-1)  # [K, 1]
            if self.sampled:
                following = paddle.zeros_like(following)
            nll = F.cross_entropy(outputs.context_logits, following, reduction="none")  # [K, 1]
            total = total + self.context_weight * nll.sum()
            tokens = tokens + self.context_weight * len(following)
        return mean_of(total, tokens) + self.emotion_weight * _emotion_loss(outputs.emotion, emotion)


def _emotion_loss(logits: Tensor, emotion: Tensor) -> Tensor:
    """Return mean cross-entropy of logits [B, C] over the annotated rows of `emotion` [B]."""
    annotated = (emotion != NO_EMOTION).astype(logits.dtype)  # [B]
    # [B]
    nll = F.cross_entropy(logits, paddle.clip(emotion, min=0), reduction="none").squeeze(-1) * annotated
    return mean_of(nll.sum(), annotated.sum())
