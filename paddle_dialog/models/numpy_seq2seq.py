"""`Seq2Seq` over arrays, which answers on the CPU without Paddle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from paddle_dialog.config.models import ModelConfig, PretrainedConfig, TransformerConfig
from paddle_dialog.models.families import numpy_pair
from paddle_dialog.models.numpy_operators import Embeddings, NumpyLinear, UnsupportedModelError, Weights
from paddle_dialog.models.numpy_pointer_generator import label_log_softmax
from paddle_dialog.models.numpy_state import DecoderState, NumpyTargetReader
from paddle_dialog.text.vocabulary import Vocabulary

POSITIONS = 256  # read at once, so that what is computed of them stays in the cache


class NumpySeq2Seq:
    """Offers `StepModel` over arrays, with the numbers of `Seq2Seq`.

    Args:
        vocab_size: V.
        arrays: its weights by structured name.

    Raises:
        UnsupportedModelError: the family has no NumPy steps for these settings, or the weights are not the config's.
    """

    uses_arrays = True

    def __init__(self, config: ModelConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        weights = Weights(arrays)
        self._encoder, self._decoder = numpy_pair(config, weights)
        tables = Embeddings(config, vocab_size, weights, "source_embedding", "output")
        self._tables = tables
        self._known_inputs = None  # of the decoder, where they are worth computing once for all tokens [V, K]
        if not self._decoder.takes_embedded:
            self._known_inputs = self._decoder.inputs(tables.target[:] * tables.factor)
        self._output = tables.output
        weights.check_all_taken()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> DecoderState:
        """Return the state before the first target token, for a source [B, S] of the given lengths [B]."""
        outputs, final = self._encoder.read(self._embedded(source), lengths)  # [B, S, H]
        state: DecoderState = self._decoder.prepare(outputs, final, lengths)
        return state

    def _embedded(self, source: np.ndarray) -> np.ndarray:
        """Return the vectors of a source's ids [...]: [..., E]."""
        embedded: np.ndarray = self._tables.source[source] * self._tables.factor
        return embedded

    def _inputs(self, tokens: np.ndarray) -> np.ndarray:
        """Return the decoder's inputs for tokens [...]: [..., K]."""
        if self._known_inputs is not None:
            return self._known_inputs[tokens]
        embedded: np.ndarray = self._tables.target[tokens] * self._tables.factor
        return embedded

    def step(self, token: np.ndarray, state: DecoderState) -> tuple[np.ndarray, DecoderState]:
        """Return logits [N, V] after one more token [N], and the new state."""
        hidden, _, state = self._decoder.step(self._inputs(token), state)  # [N, width]
        return self._output(hidden), state

    def reorder(self, state: DecoderState, index: np.ndarray) -> DecoderState:
        """Return the state of the rows `index` [M]."""
        return state.reorder(index)[0]

    def reorder_within(self, state: DecoderState, index: np.ndarray) -> DecoderState:
        """Reorder rows that stay with their source."""
        return state.reorder_within(index)


class NumpyReadingSeq2Seq(NumpySeq2Seq):
    """Offers `TextReader` too; its decoder must be a `NumpyTargetReader`."""

    def text_states(
        self, source: np.ndarray, lengths: np.ndarray, texts: Sequence[Sequence[int]], inputs: np.ndarray
    ) -> list[np.ndarray]:
        """See `TextReader`; texts that are alike in their own length and that of their source are read together."""
        assert isinstance(self._decoder, NumpyTargetReader)
        states = [np.empty((0, 0), dtype=np.float32)] * len(texts)
        sizes = np.array([len(text) + 1 for text in texts], dtype=np.int64)  # [M]
        for together in _alike(lengths[inputs], sizes):
            rows, owners = np.unique(inputs[together], return_inverse=True)
            size = lengths[rows[0]]
            outputs, _ = self._encoder.read(self._embedded(source[rows, :size]), lengths[rows])  # [B, S, H]
            tokens = np.array([[Vocabulary.bos_id, *texts[number]] for number in together])  # [M, T + 1]
            hidden = self._decoder.read_targets(self._inputs(tokens), outputs, owners)  # [M, T + 1, D]
            for number, state in zip(together.tolist(), hidden, strict=True):
                states[number] = state
        return states

    def state_log_probs(self, states: Sequence[np.ndarray], texts: Sequence[Sequence[int]]) -> np.ndarray:
        """See `TextReader`."""
        return log_probs_of_texts(self._output, states, texts)


def log_probs_of_texts(
    output: NumpyLinear, states: Sequence[np.ndarray], texts: Sequence[Sequence[int]]
) -> np.ndarray:
    """Return log p(text, end) of M texts, float64 [M].

    Args:
        output: the layer that scores the vocabulary.
        states: its inputs for the tokens of each text and its end, [T + 1, D] each.
        texts: ids without start and end token.
    """
    if not texts:
        return np.zeros(0)
    hidden = np.concatenate(states)  # [P, D]
    labels = np.array([token for text in texts for token in (*text, Vocabulary.eos_id)])  # [P]
    scores = np.empty(len(labels))  # [P]
    for start in range(0, len(labels), POSITIONS):
        part = slice(start, start + POSITIONS)
        own = np.arange(len(labels[part]))
        scores[part] = label_log_softmax(output, hidden[part], own, labels[part], np.float32(1))
    return np.add.reduceat(scores, np.cumsum([0, *map(len, states[:-1])]))


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
    """Return the model over arrays, which offers `TextReader` where its family can; see `NumpySeq2Seq`."""
    if isinstance(config, PretrainedConfig):
        raise UnsupportedModelError("the model is pretrained")
    reads = config.name == TransformerConfig.name
    return (NumpyReadingSeq2Seq if reads else NumpySeq2Seq)(config, vocab_size, arrays)
