"""The order of a context's replies by what speaks for them beside the model's own score.

A model's best replies are those that fit every context ("i am sorry to hear that"). Re-ranking asks how much a
reply owes to its context, or how worn its word sequences are, and lets that count against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle

from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.errors import UserError
from tasks.empathetic.answer import Prediction
from tasks.empathetic.config import RerankConfig
from tasks.empathetic.encoding import DialogueEncoder
from tasks.empathetic.reply_ngrams import ReplyNgrams

if TYPE_CHECKING:
    from paddle import nn

REPLY_NGRAMS = "reply_ngrams.txt.xz"  # in a bundle


class Reranker:
    """Orders candidates by a weighted sum.

    Args:
        network: scores replies without a context.
        encoder: of the network's sources.
        ngrams: of the training replies; None where they are not known.
    """

    def __init__(self, network: nn.Layer, encoder: DialogueEncoder, ngrams: ReplyNgrams | None) -> None:
        self._network = network
        self._encoder = encoder
        self._ngrams = ngrams

    def order(self, lists: Sequence[Sequence[Prediction]], weights: RerankConfig) -> list[list[Prediction]]:
        """The candidates of each context, every text once, best first; equal sums stay in the order of the search.

        Args:
            lists: candidates of each context in the order of the search.
            weights: of the sum.

        Raises:
            UserError: a weight needs the n-grams of the training replies, and they are not known.
        """
        distinct = [_distinct(found) for found in lists]
        if not weights.is_active or all(len(found) < 2 for found in distinct):
            return distinct
        flat = [candidate for found in distinct for candidate in found]
        sums = self._sums(flat, weights)
        bounds = np.cumsum([0, *map(len, distinct)])
        ordered = []
        for found, start in zip(distinct, bounds[:-1], strict=True):
            own = sums[start : start + len(found)]
            if weights.consensus:
                own = own + weights.consensus * consensus([candidate.tokens for candidate in found])
            ordered.append([found[place] for place in np.argsort(-own, kind="stable")])
        return ordered

    def _sums(self, candidates: Sequence[Prediction], weights: RerankConfig) -> np.ndarray:
        """What depends on each candidate alone, float64 [N]."""
        sums = weights.model * np.array([candidate.score for candidate in candidates])  # [N]
        texts = [candidate.tokens for candidate in candidates]
        if weights.mutual_information:
            sums = sums - weights.mutual_information * self.unconditional(texts)
        if weights.familiarity:
            ngrams = self._known_ngrams()
            sums = sums - weights.familiarity * np.array([ngrams.familiarity(text) for text in texts])
        if weights.length:
            sums = sums + weights.length * np.log([len(text) + 1 for text in texts])
        return sums

    def unconditional(self, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """log p(reply) per token, the end token counted, float64 [N]: what the network says of a reply to nobody.

        The context is the CLS position alone; words outside the vocabulary count as unknown.
        """
        if not texts:
            return np.zeros(0)
        blank, _ = self._encoder.pack(self._encoder.context([]))  # [1, k]
        source = paddle.to_tensor(np.tile(blank, (len(texts), 1, 1)))  # [N, 1, k]
        ids = [self._encoder.vocabulary.encode(text) for text in texts]
        totals = text_log_probs(self._network, source, paddle.ones([len(texts)], dtype="int64"), ids)
        return np.array(totals) / [len(text) + 1 for text in texts]

    def _known_ngrams(self) -> ReplyNgrams:
        if self._ngrams is None:
            raise UserError(
                f"decoding.rerank.familiarity: needs {REPLY_NGRAMS}, which these weights were saved without; take "
                "a bundle that has it, or set it to 0"
            )
        return self._ngrams


def _distinct(candidates: Sequence[Prediction]) -> list[Prediction]:
    """Every text once, in the place of its first."""
    texts: dict[tuple[str, ...], Prediction] = {}
    for candidate in candidates:
        texts.setdefault(candidate.tokens, candidate)
    return list(texts.values())


def consensus(texts: Sequence[Sequence[str]]) -> np.ndarray:
    """For each text how much it shares with the others: the mean F1 of its uni- and bigrams, in 0–1 [K].

    The choice of the highest is minimum Bayes risk decoding (Kumar & Byrne 2004) with that F1 as its gain.
    """
    if len(texts) < 2:
        return np.zeros(len(texts))
    bags = [Counter([*text, *pairwise(text)]) for text in texts]
    sizes = [bag.total() for bag in bags]
    alike = np.zeros((len(texts), len(texts)))  # [K, K]
    for i, one in enumerate(bags):
        for j in range(i):
            shared = (one & bags[j]).total()
            alike[i, j] = alike[j, i] = 2 * shared / max(sizes[i] + sizes[j], 1)
    mean: np.ndarray[Any, Any] = alike.sum(axis=1) / (len(texts) - 1)
    return mean
