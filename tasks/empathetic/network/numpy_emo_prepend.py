"""EmoPrepend over arrays, which answers on the CPU without Paddle."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.models.numpy_operators import Embeddings, NumpyLinear, Weights, softmax
from paddle_dialog.models.numpy_pointer_generator import NumpyPointer, same_words
from paddle_dialog.models.numpy_state import DecoderState, NumpyDecoder, NumpyEncoder
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.emotions import EMOTIONS_OF
from tasks.empathetic.data.encoding import HINT, NGRAMS, ROLE, WORD
from tasks.empathetic.data.vocabulary import FIRST_EMOTION_ID, LISTENER_ID
from tasks.empathetic.network.numpy_heads import NumpyEmotionHead

REMEMBERED = 2  # readings: of the contexts, and of the empty context that re-ranking needs


class Reading(NamedTuple):
    """Contexts as the encoder has read them."""

    source: np.ndarray  # packed [B, S, k]
    lengths: np.ndarray  # [B]
    outputs: np.ndarray  # [B, S, D]
    final: Any  # further input of the decoder
    emotions: np.ndarray  # probabilities [B, 32]


class NumpyEmoState(NamedTuple):
    """The state of a decoding step."""

    reply: DecoderState
    emotion: np.ndarray | None  # replaces the begin token [B, D]
    copy_ids: np.ndarray  # extended ids of the context [B, S]
    same: np.ndarray  # which of them are the same word [B, S, S]
    extra: int  # ids beyond the vocabulary


class NumpyEmoPrepend:
    """Offers `StepModel` and `emotion_probabilities` over arrays, with the numbers of `EmoPrepend`.

    A step writes into the cache of the state it is given, which must not be used afterwards.

    Args:
        config: of the network.
        encoder: made of the same weights.
        decoder: made of the same weights.
        vocab_size: V.
        weights: of the network.

    Raises:
        UnsupportedModelError: a weight is missing or has another shape.
    """

    uses_arrays = True

    def __init__(
        self,
        config: EmpatheticConfig,
        encoder: NumpyEncoder,
        decoder: NumpyDecoder,
        vocab_size: int,
        weights: Weights,
    ) -> None:
        self._emotions = len(EMOTIONS_OF[config.language])
        self._size, self._emotion, self._encoder, self._decoder = vocab_size, config.emotion, encoder, decoder
        self._width = config.model.width
        self._tables = Embeddings(config.model, vocab_size, weights, "embedding", "generator.output")
        self._reply_role = None
        if isinstance(config.model, CausalTransformerConfig) and config.emotion.roles:
            self._reply_role = self._tables.source[LISTENER_ID] * self._tables.factor  # [D]
        self._head = NumpyEmotionHead(config, weights, encoder.output_size)
        self._output = self._tables.output
        self._temperature = np.float32(config.generator.temperature)
        self._pointer = None
        if config.generator.pointer:
            self._pointer = NumpyPointer(NumpyLinear.named(weights, "generator.gate", config.model.width, 1))
        self.returns_log_probabilities = config.generator.pointer
        self._readings: list[Reading] = []  # the newest last

    def emotion_probabilities(self, source: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return probabilities [B, 32] of the emotions, whatever emotion the packed source [B, S, k] gives."""
        return self._read(source, lengths).emotions.copy()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> NumpyEmoState:
        """Return the state before the first word, for a packed source [B, S, k] of the given lengths [B]."""
        reading = self._read(source, lengths)
        copy_ids = source[:, :, WORD]  # [B, S]
        return NumpyEmoState(
            self._decoder.prepare(reading.outputs, reading.final, lengths),
            self._prepended(reading.emotions, source[:, 0, HINT]),
            copy_ids,
            same_words(copy_ids),
            max(int(copy_ids.max()) + 1 - self._size, 0),
        )

    def step(self, token: np.ndarray, state: NumpyEmoState) -> tuple[np.ndarray, NumpyEmoState]:
        """Score after one more word [N], and the new state.

        Returns:
            Log-probabilities over the extended vocabulary [N, V + X] with a pointer, else logits [N, V].
        """
        rows = state.reply.rows
        hidden, attention, reply = self._append(token, state)  # [N, D], [B, R, S]
        state = state._replace(reply=reply)
        logits = self._output(hidden)  # [N, V]
        if self._temperature != 1.0:
            logits /= self._temperature
        if self._pointer is None:
            return logits, state
        weights = rows.collect(np.matmul(attention, state.same))  # [N, S]
        return self._pointer(hidden, logits, weights, state.copy_ids[rows.inputs], state.extra), state

    def reorder(self, state: NumpyEmoState, index: np.ndarray) -> NumpyEmoState:
        """Return the state of the rows `index` [M]."""
        reply, left = state.reply.reorder(index)
        if left is None:
            return state._replace(reply=reply)
        emotion = None if state.emotion is None else state.emotion[left]
        return NumpyEmoState(reply, emotion, state.copy_ids[left], state.same[left], state.extra)

    def reorder_within(self, state: NumpyEmoState, index: np.ndarray) -> NumpyEmoState:
        """Reorder rows that stay with their context; what belongs to it is not copied."""
        return state._replace(reply=state.reply.reorder_within(index))

    def attention_weights(self, source: np.ndarray, lengths: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return attention [B, T, S] of each target position [B, T] over the context."""
        state, weights = self.encode(source, lengths), []
        for place in range(target.shape[1]):
            _, attention, reply = self._append(target[:, place], state)  # [B, 1, S]
            state = state._replace(reply=reply)
            weights.append(attention[:, 0])  # [B, S]
        return np.stack(weights, axis=1)

    def reply_states(
        self, source: np.ndarray, lengths: np.ndarray, target: np.ndarray, sizes: np.ndarray
    ) -> np.ndarray:
        """Return the decoder's mean output over each of K replies to one context, then its last output [K, 2 D].

        Args:
            source: packed [1, S, k].
            lengths: its length [1].
            target: extended ids [K, T], begin token first.
            sizes: how many of them are real [K].
        """
        state, sums = self.encode(source, lengths), np.zeros((len(target), self._width), np.float32)  # [K, D]
        last = np.empty_like(sums)  # [K, D]
        growing, rows = (
            np.arange(len(target)),
            np.zeros(len(target), np.int64),
        )  # replies that go on; their rows
        tokens, size = target[:1, 0], int(target.max()) + 1
        for place in range(1, target.shape[1] + 1):
            hidden, _, reply = self._append(tokens, state)  # [N, D], a row for each beginning
            state = state._replace(reply=reply)
            sums[growing] += hidden[rows]
            last[growing] = hidden[rows]
            goes_on = sizes[growing] > place
            growing, rows = growing[goes_on], rows[goes_on]
            if not len(growing):
                break
            grown, rows = np.unique(rows * size + target[growing, place], return_inverse=True)
            tokens, state = grown % size, self.reorder(state, grown // size)
        return np.concatenate([sums / sizes[:, None].astype(np.float32), last], axis=1)

    def _append(self, token: np.ndarray, state: NumpyEmoState) -> tuple[np.ndarray, np.ndarray, DecoderState]:
        """Return one more word [N] of every row; see `NumpyDecoder.step`."""
        x = self._embed_reply(token, state.emotion, state.reply.rows.inputs)  # [N, E]
        return self._decoder.step(self._decoder.inputs(x), state.reply)

    def _read(self, source: np.ndarray, lengths: np.ndarray) -> Reading:
        """Read contexts; the last ones are cached, since emotions and replies are asked for one after the other."""
        for place, known in enumerate(self._readings):
            if np.array_equal(known.source, source) and np.array_equal(known.lengths, lengths):
                self._readings.append(self._readings.pop(place))
                return known
        outputs, final = self._encoder.read(self._embed_context(source), lengths)  # [B, S, D]
        emotions = softmax(self._head(outputs, lengths, source[:, :, NGRAMS:]))  # [B, 32]
        reading = Reading(source.copy(), lengths.copy(), outputs, final, emotions)
        self._readings = [*self._readings, reading][-REMEMBERED:]
        return reading

    def _embed_context(self, source: np.ndarray) -> np.ndarray:
        """Embed word, role and hint of each position as the sum of their rows of the table, [B, S, D]."""
        embedded = self._tables.source[self._known(source[:, :, WORD])]  # [B, S, D]
        if self._emotion.roles:
            embedded += self._tables.source[source[:, :, ROLE]]
        if self._emotion.hints:
            embedded[:, 1:] += self._tables.source[source[:, 1:, HINT]]  # the emotion stands at position 0
        embedded *= self._tables.factor
        return embedded

    def _embed_reply(
        self, tokens: np.ndarray, emotion: np.ndarray | None = None, inputs: np.ndarray | None = None
    ) -> np.ndarray:
        """Embed words of replies as [..., D].

        Args:
            tokens: ids of any shape, or those of N rows [N] where there is an emotion.
            emotion: replaces the begin token [B, D].
            inputs: the context of each row [N].
        """
        embedded: np.ndarray = self._tables.target[self._known(tokens)] * self._tables.factor
        if self._reply_role is not None:
            embedded += self._reply_role
        if emotion is not None and inputs is not None:
            begins = np.flatnonzero(tokens == Vocabulary.bos_id)
            embedded[begins] = emotion[inputs[begins]]
        return embedded

    def _prepended(self, probabilities: np.ndarray, given: np.ndarray) -> np.ndarray | None:
        """Embed the emotion as [B, D]: the given one, an id [B], or the predicted one where that is 0."""
        if self._emotion.prepend == "none":
            return None
        chosen = np.where(given > 0, given - FIRST_EMOTION_ID, probabilities.argmax(axis=1))  # [B]
        weights = np.eye(self._emotions, dtype=np.float32)[chosen]  # [B, 32]
        if self._emotion.prepend_form == "weighted":
            weights = np.where(given[:, None] > 0, weights, probabilities)
        table = self._tables.target[FIRST_EMOTION_ID : FIRST_EMOTION_ID + self._emotions]  # [32, D]
        embedded: np.ndarray = weights @ (table * self._tables.factor)
        return embedded

    def _known(self, ids: np.ndarray) -> np.ndarray:
        """Return ids inside the vocabulary; the others become unknown."""
        return np.where(ids < self._size, ids, Vocabulary.unk_id)
