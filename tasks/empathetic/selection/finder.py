"""Finds the nearest replies of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tasks.empathetic.answering.answer import ReplyPrediction
from tasks.empathetic.data.encoding import DialogueEncoder, Packed, tokens_of
from tasks.empathetic.emotion.labels import EMOTIONS
from tasks.empathetic.selection.store import ReplyStore
from tasks.empathetic.selection.vectors import SelectionModel, log_probs


@dataclass(frozen=True)
class ReadContext:
    """A context as a model reads it.

    Attributes:
        turns: of the conversation, the speaker's first and last.
        packed: as the encoder packs it.
        given: the emotion that the user has given, a class id, or None.
        predicted: probabilities of the emotions [32]; None before the model has run.
        vector: of unit length [K]; None before the model has run, and for a model without selection.
    """

    turns: Sequence[str]
    packed: Packed
    given: int | None = None
    predicted: np.ndarray | None = None
    vector: np.ndarray | None = None

    @cached_property
    def words(self) -> list[tuple[str, ...]]:
        """Tokens of each turn."""
        return [tokens_of(turn) for turn in self.turns]

    @property
    def emotions(self) -> np.ndarray:
        """Probabilities of the emotions [32]; 1 for the given one, if any."""
        if self.given is not None:
            return np.eye(len(EMOTIONS))[self.given]
        assert self.predicted is not None, "the model was not asked"
        return self.predicted


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

    def find(self, contexts: Sequence[ReadContext], count: int) -> list[list[ReplyPrediction]]:
        """Return the replies nearest to each context, nearest first.

        Args:
            contexts: with their vectors.
            count: replies wanted of each.
        """
        vectors = np.stack([context.vector for context in contexts if context.vector is not None])  # [B, K]
        rows, cosines = self._store.nearest(vectors, count)  # [B, M] each
        return [
            self._predictions(context, own.tolist(), near.tolist())
            for context, own, near in zip(contexts, rows, cosines, strict=True)
        ]

    def _predictions(
        self, context: ReadContext, rows: Sequence[int], cosines: Sequence[float]
    ) -> list[ReplyPrediction]:
        texts = [self._store.texts[row] for row in rows]
        tokens = [tokens_of(text) for text in texts]
        scores = log_probs(self._model, self._encoder, tokens, context.packed).tolist()
        return [
            ReplyPrediction(text, score, words, "person", cosine, row)
            for text, score, words, cosine, row in zip(texts, scores, tokens, cosines, rows, strict=True)
        ]
