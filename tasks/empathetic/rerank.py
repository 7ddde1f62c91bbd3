"""The order of a context's replies by what speaks for them beside the model's own score.

A model's best replies are those that fit every context ("i am sorry to hear that"). Re-ranking asks how much a
reply owes to its context, how near it is to it, or how worn its word sequences are. Replies that people wrote and
replies of the generator are ordered by one sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.errors import UserError
from tasks.empathetic.answer import Prediction
from tasks.empathetic.encoding import DialogueEncoder
from tasks.empathetic.reply_ngrams import ReplyNgrams
from tasks.empathetic.selection.config import RerankConfig
from tasks.empathetic.selection.finder import ReadContext
from tasks.empathetic.selection.overlap import echo, likeness, overlaps, repetition
from tasks.empathetic.selection.store import ReplyStore
from tasks.empathetic.selection.vectors import SelectionModel, log_probs, reply_vectors

REPLY_NGRAMS = "reply_ngrams.txt.xz"  # in a bundle
AGAINST = frozenset({"mutual_information", "familiarity", "echo", "repetition"})  # count against a reply

Feature = Callable[[ReadContext, Sequence[Prediction]], np.ndarray]


class Reranker:
    """Orders candidates by a weighted sum.

    Args:
        model: scores replies without a context, and compares them with it.
        encoder: of the model's sources.
        ngrams: of the training replies; None where they are not known.
        store: of the candidates that people wrote; None where there are none.

    Attributes:
        features: what can be in the sum, by the names of ``RerankConfig``.
    """

    def __init__(
        self,
        model: StepModel,
        encoder: DialogueEncoder,
        ngrams: ReplyNgrams | None = None,
        store: ReplyStore | None = None,
    ) -> None:
        self._model = model
        self._encoder = encoder
        self._ngrams = ngrams
        self._store = store
        self.features: dict[str, Feature] = {
            "model": lambda _, found: np.array([candidate.score for candidate in found]),
            "mutual_information": lambda _, found: self._without_context(found),
            "familiarity": lambda _, found: self._familiarity(found),
            "length": lambda _, found: np.log([len(candidate.tokens) + 1 for candidate in found]),
            "consensus": lambda _, found: consensus([candidate.tokens for candidate in found]),
            "selection": self._cosines,
            "person": lambda _, found: np.array([float(candidate.origin == "person") for candidate in found]),
            "emotion": self._agreement,
            "overlap_last": lambda context, found: _overlaps(context, found)[:, 0],
            "overlap_earlier": lambda context, found: _overlaps(context, found)[:, 1],
            "echo": lambda context, found: np.array([echo(one.tokens, context.turns) for one in found]),
            "repetition": lambda context, found: np.array([repetition(one.tokens, context.turns) for one in found]),
        }

    def order(
        self, contexts: Sequence[ReadContext], lists: Sequence[Sequence[Prediction]], weights: RerankConfig
    ) -> list[list[Prediction]]:
        """The candidates of each context, every text once, best first; equal sums stay in the order they came.

        Args:
            contexts: what is answered.
            lists: candidates of each context; those of a search in its order.
            weights: of the sum; with none beside ``model`` the order of a search's candidates stays.

        Raises:
            UserError: a weight needs the n-grams of the training replies, and they are not known.
        """
        return [
            self._ordered(context, distinct(found), weights)
            for context, found in zip(contexts, lists, strict=True)
        ]

    def _ordered(
        self, context: ReadContext, found: list[Prediction], weights: RerankConfig
    ) -> list[Prediction]:
        is_mixed = any(candidate.origin == "person" for candidate in found)
        if len(found) < 2 or not (weights.is_active or is_mixed):
            return found
        sums = np.zeros(len(found))  # [C]
        for name, weight in weights.weights.items():
            sign = -1 if name in AGAINST else 1
            sums += sign * weight * self.features[name](context, found)
        return [found[place] for place in np.argsort(-sums, kind="stable")]

    def unconditional(self, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """log p(reply) per token, the end token counted, float64 [N]: what the model says of a reply to nobody."""
        return log_probs(self._model, self._encoder, texts)

    def _without_context(self, found: Sequence[Prediction]) -> np.ndarray:
        """``unconditional`` [C], which a store knows of its own replies."""
        values, new = np.zeros(len(found)), []
        for place, candidate in enumerate(found):
            if candidate.row is None or self._store is None:
                new.append(place)
            else:
                values[place] = self._store.log_probs[candidate.row]
        if new:
            values[new] = self.unconditional([found[place].tokens for place in new])
        return values

    def _familiarity(self, found: Sequence[Prediction]) -> np.ndarray:
        if self._ngrams is None:
            raise UserError(
                f"decoding.rerank.familiarity: needs {REPLY_NGRAMS}, which these weights were saved without; take "
                "a bundle that has it, or set it to 0"
            )
        return np.array([self._ngrams.familiarity(candidate.tokens) for candidate in found])

    def _cosines(self, context: ReadContext, found: Sequence[Prediction]) -> np.ndarray:
        """Cosines of the vectors of the context and of each candidate [C]."""
        values = np.array([candidate.similarity or 0.0 for candidate in found])
        new = [place for place, candidate in enumerate(found) if candidate.similarity is None]
        if new and context.vector is not None:
            model = cast(SelectionModel, self._model)  # who has the vector of a context compares
            texts = [found[place].tokens for place in new]
            values[new] = reply_vectors(model, self._encoder.vocabulary, texts) @ context.vector
        return values

    def _agreement(self, context: ReadContext, found: Sequence[Prediction]) -> np.ndarray:
        """p of the likeliest emotion in which a reply was given over that of the likeliest of all, [C]."""
        values, share = np.ones(len(found)), context.emotions / context.emotions.max()  # [C], [32]
        for place, candidate in enumerate(found):
            if candidate.row is not None and self._store is not None:
                bits = int(self._store.emotions[candidate.row])
                values[place] = max((share[i] for i in range(len(share)) if bits >> i & 1), default=1.0)
        return values


def distinct(candidates: Sequence[Prediction]) -> list[Prediction]:
    """Every text once, in the place of its first; a person's before the same of the generator."""
    texts: dict[tuple[str, ...], Prediction] = {}
    for candidate in candidates:
        known = texts.setdefault(candidate.tokens, candidate)
        if candidate.origin == "person" and known.origin == "model":
            texts[candidate.tokens] = candidate
    return list(texts.values())


def consensus(texts: Sequence[Sequence[str]]) -> np.ndarray:
    """For each text how much it shares with the others: the mean F1 of its uni- and bigrams, in 0–1 [K].

    The choice of the highest is minimum Bayes risk decoding (Kumar & Byrne 2004) with that F1 as its gain.
    """
    if len(texts) < 2:
        return np.zeros(len(texts))
    alike = likeness(texts)  # [K, K]
    np.fill_diagonal(alike, 0)
    mean: np.ndarray = alike.sum(axis=1) / (len(texts) - 1)
    return mean


def _overlaps(context: ReadContext, found: Sequence[Prediction]) -> np.ndarray:
    return np.array([overlaps(candidate.tokens, context.turns) for candidate in found])  # [C, 2]
