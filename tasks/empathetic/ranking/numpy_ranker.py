"""The ranker over arrays, which scores replies on the CPU without Paddle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.models.arrays.embeddings import without_padding
from paddle_dialog.models.arrays.operators import Weights
from paddle_dialog.models.arrays.text_tree import TextTree
from paddle_dialog.models.causal_transformer.arrays import NumpyCausalEncoder
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.encoding import ROLE, WORD, make_encoder
from tasks.empathetic.data.vocabulary import LISTENER_ID
from tasks.empathetic.ranking.config import RankerConfig
from tasks.empathetic.ranking.encoding import reply_ids


class NumpyReplyRanker:
    """The numbers of `ReplyRanker`.

    Args:
        config: it was trained with.
        vocab_size: V.
        weights: of the network.

    Raises:
        UnsupportedModelError: a weight is missing, unknown or of another shape.
    """

    def __init__(self, config: RankerConfig, vocab_size: int, weights: Weights) -> None:
        model = config.model
        assert isinstance(model, CausalTransformerConfig)
        self._roles = config.emotion.roles
        self._table = without_padding(weights.take("embedding.table.weight", vocab_size, model.width))
        self._factor = np.float32(model.width**0.5)
        self._encoder = NumpyCausalEncoder(model, weights)
        self._output = weights.take("output.weight", model.width, 1)[:, 0]  # [D]
        weights.check_all_taken()

    def __call__(self, source: np.ndarray, replies: Sequence[np.ndarray]) -> np.ndarray:
        """Score replies to one context, which is read once.

        Args:
            source: packed context [S, k].
            replies: M of them, ids [T] each, begin and end token included.

        Returns:
            float64 [M].
        """
        context = self._embedded(source[:, WORD], source[:, ROLE])  # [S, D]
        _, memory = self._encoder.read(context[None], np.array([len(source)]))  # [1, S, 2L, D]
        tree = TextTree.of([reply[1:].tolist() for reply in replies], Vocabulary.bos_id, Vocabulary.eos_id)
        x = self._embedded(tree.tokens, np.array(LISTENER_ID))  # [N, D]
        votes = self._encoder.follow(x, tree, memory[0]) @ self._output  # [N]
        spoken = np.arange(tree.paths.shape[1]) < tree.sizes[:, None]  # [M, T]
        scores: np.ndarray = (votes[tree.paths] * spoken).sum(axis=1) / tree.sizes
        return scores

    def _embedded(self, words: np.ndarray, roles: np.ndarray) -> np.ndarray:
        """Embed words and roles [n] as the sum of their rows of the table, [n, D]."""
        embedded: np.ndarray = self._table[words] * self._factor
        if self._roles:
            embedded += self._table[roles] * self._factor
        return embedded


class CandidateRanker:
    """Scores candidates, given as tokens, for a conversation, given as turns.

    Args:
        config: of the ranker.
        vocabulary: of the ranker.
        model: its network.
    """

    def __init__(self, config: RankerConfig, vocabulary: Vocabulary, model: NumpyReplyRanker) -> None:
        self._encoder = make_encoder(config, vocabulary)
        self._longest = config.data.max_target_length
        self._model = model

    def scores(self, turns: Sequence[str], replies: Sequence[Sequence[str]]) -> np.ndarray:
        """Return how well each reply fits, float64 [M]; only differences within one conversation are meaningful.

        Args:
            turns: of the conversation, oldest first; of a long one the newest are read.
            replies: tokens of each; of a long one as many as in training are read.
        """
        encoder = self._encoder.fresh()  # a long-lived one would accumulate words
        source, _ = encoder.pack(encoder.context(turns))
        return self._model(source, [reply_ids(encoder, tokens, self._longest) for tokens in replies])
