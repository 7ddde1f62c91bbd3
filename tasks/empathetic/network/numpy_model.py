"""A trained model over arrays; in the causal family it also reads given replies in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paddle_dialog.models.families import numpy_pair
from paddle_dialog.models.numpy_causal_transformer import CausalState, NumpyCausalDecoder
from paddle_dialog.models.numpy_operators import Weights
from paddle_dialog.models.numpy_pointer_generator import label_log_softmax
from paddle_dialog.models.numpy_state import NumpyDecoder, NumpyEncoder, PrefixTrie
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.network.numpy_emo_prepend import NumpyEmoPrepend, NumpyEmoState

__all__ = ["NumpyCausalEmoPrepend", "NumpyEmoPrepend", "numpy_emo_prepend"]


def numpy_emo_prepend(
    config: EmpatheticConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]
) -> NumpyEmoPrepend:
    """Build a trained model over arrays.

    Args:
        config: it was trained with.
        vocab_size: V.
        arrays: its weights by structured name.

    Raises:
        UnsupportedModelError: the family has no NumPy steps for these settings, or the weights are not the config's.
    """
    weights = Weights(arrays)
    encoder, decoder = numpy_pair(config.model, weights)
    kind = NumpyCausalEmoPrepend if isinstance(decoder, NumpyCausalDecoder) else NumpyEmoPrepend
    model = kind(config, encoder, decoder, vocab_size, weights)
    weights.check_all_taken()
    return model


class NumpyCausalEmoPrepend(NumpyEmoPrepend):
    """EmoPrepend in the causal family, which reads many given replies to a context in one pass.

    Arguments as for `NumpyEmoPrepend`, with the pair of that family.
    """

    def __init__(
        self,
        config: EmpatheticConfig,
        encoder: NumpyEncoder,
        decoder: NumpyDecoder,
        vocab_size: int,
        weights: Weights,
    ) -> None:
        super().__init__(config, encoder, decoder, vocab_size, weights)
        assert isinstance(decoder, NumpyCausalDecoder)
        self._causal = decoder
        self._context: tuple[bytes, ...] = ()  # the one of the replies read last
        self._outputs: dict[tuple[int, ...], np.ndarray] = {}  # of those replies, mean and last [2 D]

    def score_replies(self, state: NumpyEmoState, replies: Sequence[Sequence[int]]) -> np.ndarray:
        """Return log p(reply | context) per token, the end token counted.

        Args:
            state: of `encode` for a single context, before any step; it stays as it is.
            replies: K of them, extended ids without begin and end token.

        Returns:
            float64 [K].

        Raises:
            UserError: a reply is longer than the model has positions for.
        """
        return self.text_log_probs(state, replies) / [len(reply) + 1 for reply in replies]

    def text_log_probs(self, state: NumpyEmoState, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """See `TextScorer`; texts that begin alike share what is computed of their beginnings."""
        tree = PrefixTrie.of(texts, Vocabulary.bos_id, Vocabulary.eos_id)
        hidden, attention = self._follow(tree, state)  # [N, D], [N, S]
        self._remember(texts, state, tree, hidden)
        numbers, nodes, labels = tree.scored()  # [P] each
        scores = label_log_softmax(self._output, hidden, nodes, labels, self._temperature)  # [P]
        if self._pointer is not None:
            copied = state.copy_ids[0, : attention.shape[1]] == labels[:, None]  # [P, S]
            weights = np.where(copied, attention[nodes], np.float32(0)).sum(axis=1)  # [P]
            scores = self._pointer.label_log_probs(hidden, nodes, scores, weights, labels < self._size)
        return np.bincount(numbers, scores.astype(np.float64), minlength=len(texts))

    def reply_states(
        self, source: np.ndarray, lengths: np.ndarray, target: np.ndarray, sizes: np.ndarray
    ) -> np.ndarray:
        """Return mean and last outputs [K, 2 D]; see `NumpyEmoPrepend`. What was scored last is not read again."""
        texts = [tuple(reply[1:size].tolist()) for reply, size in zip(target, sizes, strict=True)]
        state = self.encode(source, lengths)
        is_known = _context(state) == self._context
        new = [text for text in texts if not is_known or text not in self._outputs]
        if new:
            tree = PrefixTrie.of(new, Vocabulary.bos_id, Vocabulary.eos_id)
            self._remember(new, state, tree, self._follow(tree, state)[0])
        return np.stack([self._outputs[text] for text in texts])

    def _follow(self, tree: PrefixTrie, state: NumpyEmoState) -> tuple[np.ndarray, np.ndarray]:
        """Return the output [N, D] at each node of replies to the only context, and attention over it [N, S]."""
        assert isinstance(state.reply, CausalState)
        inputs = np.zeros(len(tree.tokens), dtype=np.int64)  # [N]
        return self._causal.follow(self._embed_reply(tree.tokens, state.emotion, inputs), tree, state.reply)

    def _remember(
        self, texts: Sequence[Sequence[int]], state: NumpyEmoState, tree: PrefixTrie, hidden: np.ndarray
    ) -> None:
        """Keep mean and last output of each reply, as long as the context is the same."""
        if _context(state) != self._context:
            self._context, self._outputs = _context(state), {}
        nodes, ends = tree.scored()[1], np.cumsum(tree.sizes)  # [P], [K]
        sums = np.add.reduceat(hidden[nodes], ends - tree.sizes)  # [K, D]
        means = sums / tree.sizes[:, None].astype(np.float32)
        for text, mean, last in zip(texts, means, hidden[nodes[ends - 1]], strict=True):
            self._outputs[tuple(map(int, text))] = np.concatenate([mean, last])


def _context(state: NumpyEmoState) -> tuple[bytes, ...]:
    """Return what tells the only context of a state, as it was read, and the emotion before the reply from others."""
    assert isinstance(state.reply, CausalState)
    emotion = b"" if state.emotion is None else state.emotion.tobytes()
    return state.reply.keys.tobytes(), emotion
