"""EmoPrepend in the Transformer family on arrays, which answers on the CPU without Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from paddle_dialog.config.schema import TransformerConfig
from paddle_dialog.numpy_models.operators import (
    Linear,
    NotServed,
    Weights,
    padding_mask,
    softmax,
    without_padding,
)
from paddle_dialog.numpy_models.pointer_generator import NumpyPointer, same_words
from paddle_dialog.numpy_models.transformer_layers import (
    DecoderStack,
    DecoderState,
    EncoderStack,
    position_vectors,
)
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.emotions import EMOTIONS
from tasks.empathetic.encoding import HINT, NGRAMS, ROLE, WORD
from tasks.empathetic.reserved import FIRST_EMOTION_ID


def numpy_emo_prepend(
    config: EmpatheticConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]
) -> NumpyEmoPrepend:
    """A trained model over arrays.

    Args:
        config: it was trained with.
        vocab_size: V.
        arrays: its weights by structured name.

    Raises:
        NotServed: it is of another family or has GELU, or its weights are not the config's.
    """
    if not isinstance(config.model, TransformerConfig):
        raise NotServed(f"the model is {config.model.name}")
    if config.model.activation != "relu":
        raise NotServed(f"activation is {config.model.activation}")
    weights = Weights(arrays)
    model = NumpyEmoPrepend(config, config.model, vocab_size, weights)
    weights.check_all_taken()
    return model


class Reading(NamedTuple):
    """What the encoder makes of contexts."""

    source: np.ndarray  # packed [B, S, k]
    lengths: np.ndarray  # [B]
    outputs: np.ndarray  # [B, S, D]
    emotions: np.ndarray  # probabilities [B, 32]


class NumpyEmoState(NamedTuple):
    """What a decoding step needs."""

    decoder: DecoderState
    emotion: np.ndarray | None  # takes the place of the begin token [B, D]
    copy_ids: np.ndarray  # extended ids of the context [B, S]
    same: np.ndarray  # which of them are the same word [B, S, S]
    extra: int  # ids beyond the vocabulary


class NumpyEmoPrepend:
    """Offers ``StepModel`` and ``emotion_probabilities`` over arrays, with the numbers of ``EmoPrepend``.

    A step writes into the cache of the state it is given, which is of no use afterwards.

    Args:
        config: of the network.
        model: its section of the Transformer.
        vocab_size: V.
        weights: of the network.

    Raises:
        NotServed: a weight is missing or has another shape.
    """

    uses_arrays = True

    def __init__(
        self, config: EmpatheticConfig, model: TransformerConfig, vocab_size: int, weights: Weights
    ) -> None:
        width = model.width
        self._size, self._emotion = vocab_size, config.emotion
        table = target = weights.take("embedding.table.weight", vocab_size, width)
        if not model.share_embeddings:
            target = weights.take("own_target_embedding.table.weight", vocab_size, width)
        self._source_table, self._target_table = without_padding(table), without_padding(target)
        self._factor = np.float32(width**0.5)
        self._source_positions = position_vectors(model, weights, "encoder.positions.weight")
        self._target_positions = position_vectors(model, weights, "decoder.positions.weight")
        self._encoder = EncoderStack(model, weights, "encoder.stack")
        self._decoder = DecoderStack(model, weights, "decoder.stack")
        self._head = _EmotionHead(config, weights, width)
        self._output = (
            Linear(target.T, weights.take("generator.output.bias", vocab_size) if model.bias else None)
            if model.tie_output
            else Linear.named(weights, "generator.output", width, vocab_size, model.bias)
        )
        self._temperature = np.float32(config.generator.temperature)
        self._pointer = None
        if config.generator.pointer:
            self._pointer = NumpyPointer(Linear.named(weights, "generator.gate", width, 1))
        self.returns_log_probabilities = config.generator.pointer
        self._read_last: Reading | None = None

    def emotion_probabilities(self, source: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Probabilities [B, 32] of the emotions, whatever emotion the packed source [B, S, k] gives."""
        return self._read(source, lengths).emotions.copy()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> NumpyEmoState:
        """The state before the first word, for a packed source [B, S, k] of the given lengths [B]."""
        reading = self._read(source, lengths)
        copy_ids = source[:, :, WORD]  # [B, S]
        return NumpyEmoState(
            self._decoder.prepare(reading.outputs, lengths),
            self._prepended(reading.emotions, source[:, 0, HINT]),
            copy_ids,
            same_words(copy_ids),
            max(int(copy_ids.max()) + 1 - self._size, 0),
        )

    def step(self, token: np.ndarray, state: NumpyEmoState) -> tuple[np.ndarray, NumpyEmoState]:
        """Scores after one more word [N], and the new state.

        Returns:
            Log-probabilities over the extended vocabulary [N, V + X] with a pointer, else logits [N, V].
        """
        rows = state.decoder.rows
        hidden, attention, decoder = self._append(token, state)  # [N, D], [B, heads, R, S]
        state = state._replace(decoder=decoder)
        logits = self._output(hidden)  # [N, V]
        if self._temperature != 1.0:
            logits /= self._temperature
        if self._pointer is None:
            return logits, state
        weights = rows.collect(np.matmul(attention.mean(axis=1), state.same))  # [N, S]
        return self._pointer(hidden, logits, weights, state.copy_ids[rows.inputs], state.extra), state

    def reorder(self, state: NumpyEmoState, index: np.ndarray) -> NumpyEmoState:
        """The state of the rows ``index`` [M]."""
        decoder, left = state.decoder.reorder(index)
        if left is None:
            return state._replace(decoder=decoder)
        emotion = None if state.emotion is None else state.emotion[left]
        return NumpyEmoState(decoder, emotion, state.copy_ids[left], state.same[left], state.extra)

    def reorder_within(self, state: NumpyEmoState, index: np.ndarray) -> NumpyEmoState:
        """``reorder`` for rows that stay with their context: what belongs to it is not copied."""
        return state._replace(decoder=state.decoder.reorder_within(index))

    def attention_weights(self, source: np.ndarray, lengths: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Attention [B, T, S] of each target position [B, T] over the context, averaged over heads."""
        state, weights = self.encode(source, lengths), []
        for place in range(target.shape[1]):
            _, attention, decoder = self._append(target[:, place], state)  # [B, heads, 1, S]
            state = state._replace(decoder=decoder)
            weights.append(attention.mean(axis=1)[:, 0])  # [B, S]
        return np.stack(weights, axis=1)

    def _append(self, token: np.ndarray, state: NumpyEmoState) -> tuple[np.ndarray, np.ndarray, DecoderState]:
        """One more word [N] of every row, see ``DecoderStack``."""
        x = self._target_table[self._known(token)] * self._factor  # [N, D]
        if state.emotion is not None:
            begins = np.flatnonzero(token == Vocabulary.bos_id)
            x[begins] = state.emotion[state.decoder.rows.inputs[begins]]
        x += self._target_positions[state.decoder.length]
        return self._decoder(x, state.decoder)

    def _read(self, source: np.ndarray, lengths: np.ndarray) -> Reading:
        """Reads contexts; asked for their emotions and then for replies, it reads them once."""
        last = self._read_last
        if last is None or not (
            np.array_equal(last.source, source) and np.array_equal(last.lengths, lengths)
        ):
            embedded = self._embed_context(source) + self._source_positions[: source.shape[1]]  # [B, S, D]
            outputs = self._encoder(embedded, lengths)  # [B, S, D]
            emotions = softmax(self._head(outputs, lengths, source[:, :, NGRAMS:]))  # [B, 32]
            last = self._read_last = Reading(source.copy(), lengths.copy(), outputs, emotions)
        return last

    def _embed_context(self, source: np.ndarray) -> np.ndarray:
        """Word, role and hint of each position as the sum of their rows of the table, [B, S, D]."""
        embedded = self._source_table[self._known(source[:, :, WORD])]  # [B, S, D]
        if self._emotion.roles:
            embedded += self._source_table[source[:, :, ROLE]]
        if self._emotion.hints:
            embedded[:, 1:] += self._source_table[source[:, 1:, HINT]]  # at position 0 stands the emotion
        embedded *= self._factor
        return embedded

    def _prepended(self, probabilities: np.ndarray, given: np.ndarray) -> np.ndarray | None:
        """The emotion's embedding [B, D]: of the given one, an id [B], and where that is 0 of the predicted."""
        if self._emotion.prepend == "none":
            return None
        chosen = np.where(given > 0, given - FIRST_EMOTION_ID, probabilities.argmax(axis=1))  # [B]
        weights = np.eye(len(EMOTIONS), dtype=np.float32)[chosen]  # [B, 32]
        if self._emotion.prepend_form == "weighted":
            weights = np.where(given[:, None] > 0, weights, probabilities)
        table = self._target_table[FIRST_EMOTION_ID : FIRST_EMOTION_ID + len(EMOTIONS)]  # [32, D]
        embedded: np.ndarray = weights @ (table * self._factor)
        return embedded

    def _known(self, ids: np.ndarray) -> np.ndarray:
        """Ids inside the vocabulary; the others become unknown."""
        return np.where(ids < self._size, ids, Vocabulary.unk_id)


class _EmotionHead:
    """The logits of ``EmotionHead.answer``."""

    def __init__(self, config: EmpatheticConfig, weights: Weights, width: int) -> None:
        buckets, count = config.emotion.ngram_buckets, len(EMOTIONS)
        self._query = None
        if config.emotion.head == "attention":
            self._query = weights.take("emotion_head.query.weight", width, 1)
        self._output = weights.take("emotion_head.output.weight", width, count)
        self._share = np.float32(config.emotion.encoder_share)
        self._table = self._idf = None
        if buckets:
            self._table = weights.take("emotion_head.ngram_table", buckets, count)
            self._idf = weights.take("emotion_head.ngram_idf", buckets)

    def __call__(self, outputs: np.ndarray, lengths: np.ndarray, ngrams: np.ndarray) -> np.ndarray:
        """Logits [B, 32].

        Args:
            outputs: of the encoder [B, S, D].
            lengths: [B].
            ngrams: buckets of each position [B, S, G].
        """
        logits = self._pool(outputs, lengths) @ self._output  # [B, 32]
        if self._table is None or self._idf is None:
            return logits
        logits *= self._share
        for row, buckets in enumerate(ngrams.reshape(len(ngrams), -1)):
            present = buckets[buckets > 0]  # bucket 0 is none and has no weight
            weights = self._idf[present]
            length = np.sqrt(np.dot(weights, weights))
            if length > 0:
                logits[row] += (weights / length) @ self._table[present]
        return logits

    def _pool(self, outputs: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """One vector of each context [B, D]."""
        if self._query is None:
            return outputs[:, 0]
        scores = (outputs @ self._query)[..., 0]  # [B, S]
        weights = softmax(scores + padding_mask(lengths, outputs.shape[1]))  # [B, S]
        pooled: np.ndarray = np.matmul(weights[:, None], outputs)[:, 0]
        return pooled
