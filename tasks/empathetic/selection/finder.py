"""Finds the nearest replies of a store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasks.empathetic.data.encoding import DialogueEncoder
from tasks.empathetic.reading.context import ReadContext
from tasks.empathetic.reading.vectors import SelectionModel, log_probs
from tasks.empathetic.selection.candidate import Nearness, ReplyPrediction
from tasks.empathetic.selection.config import ReplyRerankConfig
from tasks.empathetic.selection.store import ReplyStore, highest


class ReplyFinder:
    """Finds the nearest replies of a store.

    Args:
        model: made the store's vectors and says how likely a reply is.
        encoder: of the model.
        store: of replies.
    """

    def __init__(self, model: SelectionModel, encoder: DialogueEncoder, store: ReplyStore) -> None:
        self._model = model
        self._encoder = encoder
        self._store = store

    def find(
        self, contexts: Sequence[ReadContext], count: int, weights: ReplyRerankConfig
    ) -> list[list[ReplyPrediction]]:
        """Return the replies of the store for which most speaks that can be told of all of them, best first.

        Args:
            contexts: with their vectors, if the model has any.
            count: replies wanted of each.
            weights: of the sum; of it count the cosines of `Nearness`, and where all their weights are 0 the
                first that the model has.
        """
        return [self._predictions(context, count, weights) for context in contexts]

    def given(self, context: ReadContext, rows: Sequence[int]) -> list[ReplyPrediction]:
        """Return certain replies of the store as candidates for a context."""
        return self._made(context, rows, self._near(context))

    def _predictions(
        self, context: ReadContext, count: int, weights: ReplyRerankConfig
    ) -> list[ReplyPrediction]:
        near = self._near(context)
        shares = {name: weights.weights[name] for name in near if name in weights.weights}
        shares = shares or dict.fromkeys(list(near)[:1], 1.0)
        sums = np.zeros(len(self._store), np.float32)
        for name, weight in shares.items():
            sums += np.float32(weight) * near[name]
        return self._made(context, highest(sums, count), near)

    def _near(self, context: ReadContext) -> dict[str, np.ndarray]:
        """Return the cosines of `Nearness` for all replies of the store, float32 [N] each."""
        store, size = self._store, len(self._store)
        near: dict[str, np.ndarray] = {}
        if context.vector is not None:
            near["selection"] = store.vectors @ context.vector
        if store.contexts is not None:
            near["context_words"] = store.contexts.by_words(context.terms, size)
        if store.contexts is not None and context.vector is not None:
            near["context_vectors"] = store.contexts.by_vectors(context.vector, size)
        return near

    def _made(
        self, context: ReadContext, rows: Sequence[int], near: dict[str, np.ndarray]
    ) -> list[ReplyPrediction]:
        texts, own = [self._store.texts[row] for row in rows], self._store.own
        tokens = [self._encoder.language.tokens_of(text) for text in texts]
        scores = log_probs(self._model, self._encoder, tokens, context.packed).tolist()
        return [
            ReplyPrediction(
                text,
                score,
                words,
                "written" if own is not None and own[row] else "person",
                Nearness(**{name: float(cosines[row]) for name, cosines in near.items()}),
                row,
            )
            for row, text, score, words in zip(rows, texts, scores, tokens, strict=True)
        ]
