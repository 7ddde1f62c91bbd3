"""Models from source to target in NumPy, which answer on the CPU without Paddle; with and without copying."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.config.models import FamilyConfig, ModelConfig, PretrainedConfig, TransformerConfig
from paddle_dialog.errors import UnsupportedModelError
from paddle_dialog.models.families import numpy_pair
from paddle_dialog.models.numpy_layers import DecoderState
from paddle_dialog.models.numpy_operators import (
    NumpyLinear,
    Weights,
    log_probs_of_texts,
)
from paddle_dialog.models.numpy_transformer import NumpyTransformerDecoder
from paddle_dialog.text.vocabulary import Vocabulary

LEAST = np.float32(1e-30)  # as in `layers.pointer_generator`
FLOOR = np.float32(-1e3)
UNKNOWN = np.float32(-1e4)
BLOCK = 16  # rows normalised at once, so that they stay in the cache
POSITIONS = 256  # of texts that are read at once, for the same


class NumpyEmbeddings:
    """The tables of source and target, and the output layer, which may be the target's table.

    Args:
        vocab_size: V.
        source_name: of the source's table.
        output_name: of the output layer.

    Attributes:
        source: the vector of each id of a source [V, E].
        target: the same of a target.
        output: hidden to logits.
    """

    def __init__(
        self, config: FamilyConfig, vocab_size: int, weights: Weights, source_name: str, output_name: str
    ) -> None:
        shape, scale = (vocab_size, config.embedding_size), config.scale_embeddings
        source = target = f"{source_name}.table.weight"
        self.source = self.target = weights.take_table(source, *shape, scale)
        if not config.share_embeddings:
            target = "own_target_embedding.table.weight"
            self.target = weights.take_table(target, *shape, scale)
        self.output = (
            NumpyLinear(
                weights.take(target, *shape).T,
                weights.take(f"{output_name}.bias", vocab_size) if config.output_bias else None,
            )
            if config.tie_output
            else NumpyLinear.named(weights, output_name, config.width, vocab_size, config.output_bias)
        )


class NumpySeq2Seq:
    """Implements `StepModel` in NumPy, with the results of `Seq2Seq`.

    Args:
        vocab_size: V.
        arrays: its weights by structured name.
    """

    def __init__(self, config: ModelConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        weights = Weights(arrays)
        self._encoder, self._decoder = numpy_pair(config, weights)
        self._tables = NumpyEmbeddings(config, vocab_size, weights, "source_embedding", "output")
        weights.check_all_taken()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> DecoderState:
        """Return the state before the first target token, for a source [B, S] of the given lengths [B]."""
        outputs, final = self._encoder.read(self._tables.source[source], lengths)  # [B, S, H]
        state: DecoderState = self._decoder.prepare(outputs, final, lengths)
        return state

    def step(self, token: np.ndarray, state: DecoderState) -> tuple[np.ndarray, DecoderState]:
        """Return logits [N, V] after one more token [N], and the new state."""
        hidden, _, state = self._decoder.step(self._tables.target[token], state)  # [N, width]
        return self._tables.output(hidden), state

    def reorder(self, state: DecoderState, index: np.ndarray) -> DecoderState:
        """Return the state of the rows `index` [M]."""
        return state.reorder(index)[0]


class NumpyTransformerSeq2Seq(NumpySeq2Seq):
    """Implements `TextReader` too, for the Transformer."""

    def text_states(
        self, source: np.ndarray, lengths: np.ndarray, texts: Sequence[Sequence[int]], inputs: np.ndarray
    ) -> list[np.ndarray]:
        """Read texts, those of one length whose sources have one length together; arguments as for `TextReader`."""
        assert isinstance(self._decoder, NumpyTransformerDecoder)
        states = [np.empty((0, 0), dtype=np.float32)] * len(texts)
        sizes = np.array([len(text) + 1 for text in texts], dtype=np.int64)  # [M]
        for together in _alike(lengths[inputs], sizes):
            rows, owners = np.unique(inputs[together], return_inverse=True)
            size = lengths[rows[0]]
            embedded = self._tables.source[source[rows, :size]]
            outputs, _ = self._encoder.read(embedded, lengths[rows])  # [B, S, H]
            tokens = np.array([[Vocabulary.bos_id, *texts[number]] for number in together])  # [M, T + 1]
            hidden = self._decoder.read_targets(self._tables.target[tokens], outputs, owners)  # [M, T + 1, D]
            for number, state in zip(together.tolist(), hidden, strict=True):
                states[number] = state
        return states

    def state_log_probs(self, states: Sequence[np.ndarray], texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Return log p(text, end | input) [M] from the states of the texts."""
        return log_probs_of_texts(self._tables.output, states, texts)


def _alike(lengths: np.ndarray, sizes: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the numbers of texts [M] of one size whose sources have one length, of few positions together."""
    order = np.lexsort((lengths, sizes))
    ends = np.flatnonzero(np.diff(lengths[order]) | np.diff(sizes[order])) + 1
    for group in np.split(order, ends) if len(order) else ():
        positions = len(group) * max(lengths[group[0]], sizes[group[0]])
        yield from np.array_split(group, min(len(group), -(-positions // POSITIONS)))


def numpy_seq2seq(
    config: ModelConfig | PretrainedConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]
) -> NumpySeq2Seq:
    """Return the model in NumPy, which implements `TextReader` where its family can."""
    if isinstance(config, PretrainedConfig):
        raise UnsupportedModelError("the model is pretrained")
    reads = config.name == TransformerConfig.name
    return (NumpyTransformerSeq2Seq if reads else NumpySeq2Seq)(config, vocab_size, arrays)


def same_words(copy_ids: np.ndarray) -> np.ndarray:
    """Return which positions of a source hold the same word, 1 or 0, float32 [B, S, S] of extended ids [B, S]."""
    return (copy_ids[:, :, None] == copy_ids[:, None, :]).astype(np.float32)


class NumpyPointer:
    """The gate between generating and copying.

    Args:
        gate: H to 1.
    """

    def __init__(self, gate: NumpyLinear) -> None:
        self._gate = gate

    def __call__(
        self, hidden: np.ndarray, logits: np.ndarray, word_weights: np.ndarray, ids: np.ndarray, extra: int
    ) -> np.ndarray:
        """Return log P over the extended vocabulary.

        Args:
            hidden: decoder outputs [N, H].
            logits: of the vocabulary [N, V].
            word_weights: attention over the source, at each position that of its whole word [N, S].
            ids: extended ids of the source [N, S].
            extra: number X of ids beyond the vocabulary.

        Returns:
            float32 [N, V + X], at least `FLOOR`.
        """
        generate, copy = self._log_shares(hidden)  # [N, 1] each
        copied = copy + np.log(np.maximum(word_weights, LEAST))  # [N, S]
        count, size = logits.shape
        scores = np.empty((count, size + extra), dtype=np.float32)  # [N, V + X]
        scores[:, size:] = UNKNOWN
        exponentials = np.empty((BLOCK, size), dtype=np.float32)
        for start in range(0, count, BLOCK):
            block = slice(start, start + BLOCK)
            part, out = logits[block], scores[block]  # [R, V], [R, V + X]
            highest = part.max(axis=1, keepdims=True)  # [R, 1]
            powers = np.subtract(part, highest, out=exponentials[: len(part)])
            total = np.exp(powers, out=powers).sum(axis=1, keepdims=True)  # [R, 1]
            np.add(part, generate[block] - highest - np.log(total), out=out[:, :size])
            mixed = np.logaddexp(np.take_along_axis(out, ids[block], axis=1), copied[block])  # [R, S]
            np.put_along_axis(out, ids[block], mixed, axis=1)
            np.maximum(out, FLOOR, out=out)
        return scores

    def label_log_probs(
        self, hidden: np.ndarray, generated: np.ndarray, weights: np.ndarray, known: np.ndarray
    ) -> np.ndarray:
        """Return log P of given tokens, as `__call__` has them among all others.

        Args:
            hidden: decoder outputs, each of which predicts one of the tokens [P, H].
            generated: log of the vocabulary's softmax at each token [P].
            weights: attention over all positions of the source that hold the token [P].
            known: whether the token is in the vocabulary, bool [P]; `generated` counts only there.

        Returns:
            float32 [P].
        """
        generate, copy = (share[:, 0] for share in self._log_shares(hidden))  # [P] each
        produced = np.where(known, generate + generated, UNKNOWN)
        mixed: np.ndarray = np.logaddexp(produced, copy + np.log(np.maximum(weights, LEAST)))
        return np.maximum(mixed, FLOOR)

    def _log_shares(self, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log probabilities of generating and of copying, [N, 1] each."""
        gate = self._gate(hidden)  # [N, 1]
        return -np.logaddexp(np.float32(0), -gate), -np.logaddexp(np.float32(0), gate)


class NumpyPointerState(NamedTuple):
    """The state of a decoding step."""

    past: DecoderState
    begin: np.ndarray | None  # takes the place of the begin token's embedding [B, E]
    copy_ids: np.ndarray  # extended ids of the source [B, S]
    same: np.ndarray  # which of them are the same token [B, S, S]
    extra: int  # ids beyond the vocabulary


class NumpyPointerSeq2Seq:
    """Implements `StepModel` in NumPy, with the results of `PointerSeq2Seq`.

    A step writes into the cache of the state it is given, which must not be used afterwards.

    Args:
        config: of the network.
        vocab_size: V.
        weights: of the network; those that are not taken are left to who makes the model.
        has_pointer: whether tokens can be copied.
        temperature: divides the vocabulary's logits.
    """

    def __init__(
        self,
        config: FamilyConfig,
        vocab_size: int,
        weights: Weights,
        has_pointer: bool = True,
        temperature: float = 1.0,
    ) -> None:
        self._size, self._width = vocab_size, config.width
        self._encoder, self._decoder = numpy_pair(config, weights)
        self._tables = NumpyEmbeddings(config, vocab_size, weights, "embedding", "generator.output")
        self._temperature = np.float32(temperature)
        self._pointer = None
        if has_pointer:
            self._pointer = NumpyPointer(NumpyLinear.named(weights, "generator.gate", config.width, 1))
        self.returns_log_probabilities = has_pointer

    @classmethod
    def of_arrays(
        cls, config: FamilyConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]
    ) -> NumpyPointerSeq2Seq:
        """Build the model of a network's weights by structured name; errors as above."""
        weights = Weights(arrays)
        model = cls(config, vocab_size, weights)
        weights.check_all_taken()
        return model

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> NumpyPointerState:
        """Return the state before the first token, for sources [B, S] of the given lengths [B]."""
        outputs, final = self._encoder.read(self._embed_source(source), lengths)  # [B, S, H]
        return self._begin(self._decoder.prepare(outputs, final, lengths), source)

    def step(self, token: np.ndarray, state: NumpyPointerState) -> tuple[np.ndarray, NumpyPointerState]:
        """Score after one more token [N]; log-probabilities [N, V + X], logits [N, V] without a pointer."""
        rows = state.past.rows
        hidden, attention, past = self._append(token, state)  # [N, D], [B, R, S]
        state = state._replace(past=past)
        logits = self._tables.output(hidden)  # [N, V]
        if self._temperature != 1.0:
            logits /= self._temperature
        if self._pointer is None:
            return logits, state
        weights = rows.gather(np.matmul(attention, state.same))  # [N, S]
        return self._pointer(hidden, logits, weights, state.copy_ids[rows.inputs], state.extra), state

    def reorder(self, state: NumpyPointerState, index: np.ndarray) -> NumpyPointerState:
        """Return the state of the rows `index` [M]."""
        past, left = state.past.reorder(index)
        if left is None:
            return state._replace(past=past)
        begin = None if state.begin is None else state.begin[left]
        return NumpyPointerState(past, begin, state.copy_ids[left], state.same[left], state.extra)

    def attention_weights(self, source: Any, lengths: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the attention [B, T, S] of each target position [B, T] over the source."""
        state, weights = self.encode(source, lengths), []
        for place in range(target.shape[1]):
            _, attention, past = self._append(target[:, place], state)  # [B, 1, S]
            state = state._replace(past=past)
            weights.append(attention[:, 0])  # [B, S]
        return np.stack(weights, axis=1)

    def _begin(self, past: Any, copy_ids: np.ndarray, begin: np.ndarray | None = None) -> NumpyPointerState:
        """Return the state before the first token; `copy_ids` are the extended ids of the sources [B, S]."""
        extra = max(int(copy_ids.max()) + 1 - self._size, 0)
        return NumpyPointerState(past, begin, copy_ids, same_words(copy_ids), extra)

    def _append(
        self, token: np.ndarray, state: NumpyPointerState
    ) -> tuple[np.ndarray, np.ndarray, DecoderState]:
        """Append one more token [N] to every row; return as `NumpyDecoder.step`."""
        embedded = self._embed_target(token, state.begin, state.past.rows.inputs)  # [N, E]
        return self._decoder.step(embedded, state.past)

    def _embed_source(self, source: np.ndarray) -> np.ndarray:
        """Embed sources [B, S] as [B, S, E]."""
        return self._tables.source[self._known(source)]

    def _embed_target(self, tokens: np.ndarray, begin: np.ndarray | None, inputs: np.ndarray) -> np.ndarray:
        """Embed tokens [N] as [N, E], those of the source `inputs` [N] with its `begin` [B, E] as begin token."""
        return self._replace_begin(self._tables.target[self._known(tokens)], tokens, begin, inputs)

    def _replace_begin(
        self, embedded: np.ndarray, tokens: np.ndarray, begin: np.ndarray | None, inputs: np.ndarray
    ) -> np.ndarray:
        if begin is not None:
            places = np.flatnonzero(tokens == Vocabulary.bos_id)
            embedded[places] = begin[inputs[places]]
        return embedded

    def _known(self, ids: np.ndarray) -> np.ndarray:
        """Return extended ids of any shape; those beyond the vocabulary become unknown."""
        return np.where(ids < self._size, ids, Vocabulary.unk_id)
