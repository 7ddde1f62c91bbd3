"""The order of a context's replies by what speaks for them beside the model's own score.

A model's best replies are those that fit every context ("i am sorry to hear that"). Re-ranking asks how much a
reply owes to its context, or how worn its word sequences are, and lets that count against it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.decoding.prefix_tree import one_input_log_probs
from paddle_dialog.errors import UserError
from tasks.empathetic.answer import Prediction
from tasks.empathetic.config import RerankConfig
from tasks.empathetic.encoding import DialogueEncoder
from tasks.empathetic.reply_ngrams import ReplyNgrams

REPLY_NGRAMS = "reply_ngrams.txt.xz"  # in a bundle


class Reranker:
    """Orders candidates by a weighted sum.

    Args:
        model: scores replies without a context.
        encoder: of the model's sources.
        ngrams: of the training replies; None where they are not known.
    """

    def __init__(self, model: StepModel, encoder: DialogueEncoder, ngrams: ReplyNgrams | None) -> None:
        self._model = model
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
        """log p(reply) per token, the end token counted, float64 [N]: what the model says of a reply to nobody.

        The context is the CLS position alone; words outside the vocabulary count as unknown.
        """
        blank, _ = self._encoder.pack(self._encoder.context([]))  # [1, k]
        ids = [self._encoder.vocabulary.encode(text) for text in texts]
        return one_input_log_probs(self._model, blank, ids) / [len(text) + 1 for text in texts]

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
    places: dict[Hashable, int] = {}
    bags = [[places.setdefault(gram, len(places)) for gram in [*text, *pairwise(text)]] for text in texts]
    counts = np.stack([np.bincount(bag, minlength=len(places)) for bag in bags])  # [K, n-grams]
    sizes = counts.sum(axis=1)  # [K]
    shared = np.stack([np.minimum(counts, one).sum(axis=1) for one in counts])  # [K, K]
    alike = 2 * shared / np.maximum(sizes[:, None] + sizes, 1)  # [K, K]
    np.fill_diagonal(alike, 0)
    mean: np.ndarray[Any, Any] = alike.sum(axis=1) / (len(texts) - 1)
    return mean
