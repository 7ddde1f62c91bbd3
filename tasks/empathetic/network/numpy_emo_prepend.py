"""EmoPrepend in NumPy, which answers on the CPU without Paddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paddle_dialog.config.models import CausalTransformerConfig, PretrainedConfig
from paddle_dialog.errors import UnsupportedModelError
from paddle_dialog.models.numpy_causal_transformer import NumpyCausalDecoder
from paddle_dialog.models.numpy_layers import AttentionCache
from paddle_dialog.models.numpy_operators import (
    Weights,
    label_log_softmax,
    padding_mask,
    require_supported,
    softmax,
)
from paddle_dialog.models.numpy_seq2seq import NumpyPointerSeq2Seq, NumpyPointerState
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS_OF
from paddle_dialog.tasks.empathetic.data.encoding import (
    CONFIDENCE_FLOOR,
    FIRST_EMOTION_ID,
    LISTENER_ID,
    NO_EMOTION,
    Source,
    column_weights,
)
from paddle_dialog.text.vocabulary import Vocabulary


def numpy_emo_prepend(
    config: EmpatheticConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]
) -> NumpyEmoPrepend:
    """Build a trained model in NumPy.

    Args:
        config: it was trained with.
        vocab_size: V.
        arrays: its weights by structured name.
    """
    if isinstance(config.model, PretrainedConfig):
        raise UnsupportedModelError("the model is pretrained")
    weights = Weights(arrays)
    is_causal = isinstance(config.model, CausalTransformerConfig)
    model = (NumpyCausalEmoPrepend if is_causal else NumpyEmoPrepend)(config, vocab_size, weights)
    weights.check_all_taken()
    return model


class NumpyEmoPrepend(NumpyPointerSeq2Seq):
    """Implements `StepModel` and `read_contexts` in NumPy, with the results of `EmoPrepend`.

    Args:
        config: of the network.
        vocab_size: V.
        weights: of the network.
    """

    def __init__(self, config: EmpatheticConfig, vocab_size: int, weights: Weights) -> None:
        model, generator = config.model, config.generator
        assert not isinstance(model, PretrainedConfig)
        super().__init__(model, vocab_size, weights, generator.pointer, generator.temperature)
        self._emotions = len(EMOTIONS_OF[config.language])
        self._likeliest = config.emotion.prepend_form == "argmax"
        self._reply_role = None
        if isinstance(model, CausalTransformerConfig):
            self._reply_role = self._tables.source[LISTENER_ID]  # [D]
        self._head = NumpyEmotionHead(config, weights, self._encoder.output_size)

    def encode(  # type: ignore[override]
        self, source: Source, lengths: np.ndarray
    ) -> NumpyPointerState:
        """Return the state before the first word, for sources of the given lengths [B]."""
        return self.read_contexts(source, lengths)[0]

    def read_contexts(self, source: Source, lengths: np.ndarray) -> tuple[NumpyPointerState, np.ndarray]:
        """Return the state before the first word, and probabilities [B, C] of the emotions.

        The probabilities do not depend on the condition.
        """
        outputs, final = self._encoder.read(self._embed_source(source), lengths)  # [B, S, D]
        emotions = softmax(self._head(outputs, lengths, source.ngrams))  # [B, C]
        past = self._decoder.prepare(outputs, final, lengths)
        begin = self._prepended(emotions, source.condition)  # [B, D]
        return self._begin(past, source.words, begin), emotions

    def _embed_source(self, source: Source) -> np.ndarray:  # type: ignore[override]
        """Embed word, role and hint of each position as the sum of their rows of the table, [B, S, D]."""
        embedded: np.ndarray = self._tables.source[self._known(source.words)]  # [B, S, D]
        for ids in (source.roles, source.hints):
            if ids is not None:
                embedded += self._tables.source[ids]
        return embedded

    def _embed_target(self, tokens: np.ndarray, begin: np.ndarray | None, inputs: np.ndarray) -> np.ndarray:
        """Embed words of replies [N] as [N, D]."""
        embedded: np.ndarray = self._tables.target[self._known(tokens)]
        if self._reply_role is not None:
            embedded += self._reply_role
        return self._replace_begin(embedded, tokens, begin, inputs)

    def _prepended(self, probabilities: np.ndarray, condition: np.ndarray) -> np.ndarray:
        """Embed the emotion as [B, D]: that of the condition [B], or the predicted one."""
        if self._likeliest:
            probabilities = np.eye(self._emotions, dtype=np.float32)[probabilities.argmax(axis=1)]
        given = np.eye(self._emotions, dtype=np.float32)[condition]  # [B, C]; any row for `NO_EMOTION`
        weights = np.where(condition[:, None] == NO_EMOTION, probabilities, given)
        table = self._tables.target[FIRST_EMOTION_ID : FIRST_EMOTION_ID + self._emotions]  # [C, D]
        embedded: np.ndarray = weights @ table
        return embedded


class NumpyCausalEmoPrepend(NumpyEmoPrepend):
    """EmoPrepend in the causal family, which reads many replies to a context in one pass, for the judge."""

    def read_replies(
        self, state: NumpyPointerState, replies: Sequence[Sequence[int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Read replies to one context.

        Args:
            state: of the context, before the first word; it stays as it is.
            replies: K of them, extended ids without begin and end token.

        Returns:
            log p(reply, end | context), float64 [K]; and the decoder's mean output over each, then its last [K, 2 D].
        """
        sizes = np.array([len(reply) + 1 for reply in replies])  # [K]
        real = np.arange(sizes.max()) < sizes[:, None]  # [K, T]
        target = np.full(real.shape, Vocabulary.pad_id)
        target[real] = [token for reply in replies for token in (Vocabulary.bos_id, *reply)]
        inputs = np.zeros(target.size, dtype=np.int64)
        embedded = self._embed_target(target.ravel(), state.begin, inputs).reshape(*target.shape, -1)
        assert isinstance(state.past, AttentionCache) and isinstance(self._decoder, NumpyCausalDecoder)
        hidden, attention = self._decoder.read_targets(embedded, state.past)  # [K, T, D], [K, T, S]
        labels = np.array([token for reply in replies for token in (*reply, Vocabulary.eos_id)])  # [P]
        outputs = hidden[real]  # [P, D]
        scores = label_log_softmax(self._tables.output, outputs, labels, self._temperature)  # [P]
        if self._pointer is not None:
            copied = state.copy_ids[0, : attention.shape[2]] == labels[:, None]  # [P, S]
            weights = np.where(copied, attention[real], np.float32(0)).sum(axis=1)  # [P]
            scores = self._pointer.label_log_probs(outputs, scores, weights, labels < self._size)
        numbers = np.repeat(np.arange(len(replies)), sizes)  # [P]
        means = (hidden * real[..., None]).sum(axis=1) / sizes[:, None].astype(np.float32)  # [K, D]
        last = hidden[np.arange(len(hidden)), sizes - 1]  # [K, D]
        return np.bincount(numbers, scores.astype(np.float64)), np.concatenate([means, last], axis=1)


def attention_pool(values: np.ndarray, query: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the mean of the real positions, weighted by a softmax of their products with a query.

    Args:
        values: [B, S, D].
        query: [D, 1].
        lengths: [B].

    Returns:
        [B, D].
    """
    scores = (values @ query)[..., 0]  # [B, S]
    weights = softmax(scores + padding_mask(lengths, values.shape[1]))  # [B, S]
    pooled: np.ndarray = np.matmul(weights[:, None], values)[:, 0]
    return pooled


class NumpyEmotionHead:
    """The logits of `EmotionHead.combine`.

    Args:
        config: of the network.
        weights: of the network.
        width: of the encoder's outputs D.
    """

    def __init__(self, config: EmpatheticConfig, weights: Weights, width: int) -> None:
        require_supported("emotion.head", config.emotion.head, "cls", "attention")
        buckets, count = config.emotion.ngram_buckets, len(EMOTIONS_OF[config.language])
        self._query = None
        if config.emotion.head == "attention":
            self._query = weights.take("emotion_head.query.weight", width, 1)
        self._output = weights.take("emotion_head.output.weight", width, count)
        self._weight = np.float32(config.emotion.encoder_weight)
        self._table = self._idf = self._neutral = None
        self._column_weights = column_weights(config.emotion.character_weight)  # [G]
        if buckets:
            self._table = weights.take("emotion_head.ngram_table", buckets, count)
            self._idf = weights.take("emotion_head.ngram_idf", buckets)
            if config.emotion.small_talk:
                self._neutral = weights.take("emotion_head.ngram_plainness", buckets)

    def __call__(self, outputs: np.ndarray, lengths: np.ndarray, ngrams: np.ndarray | None) -> np.ndarray:
        """Return logits [B, C].

        Args:
            outputs: of the encoder [B, S, D].
            lengths: [B].
            ngrams: buckets of each position [B, S, G].
        """
        pooled = outputs[:, 0] if self._query is None else attention_pool(outputs, self._query, lengths)
        logits = pooled @ self._output  # [B, C]
        if self._table is None or self._idf is None or ngrams is None:
            return logits
        logits *= self._weight
        for row, buckets in enumerate(ngrams):  # [S, G]
            kept = buckets > 0  # bucket 0 means none and has no weight
            present = buckets[kept]
            weights = self._idf[present] * np.broadcast_to(self._column_weights, buckets.shape)[kept]
            length = np.sqrt(np.dot(weights, weights))
            if length > 0:
                weights /= length
                logits[row] += weights @ self._table[present]
            if self._neutral is not None:
                neutral = np.dot(weights, self._neutral[present]) - self._neutral[0]
                logits[row] *= CONFIDENCE_FLOOR + (1 - CONFIDENCE_FLOOR) / (1 + np.exp(neutral))
        return logits
