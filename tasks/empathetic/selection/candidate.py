"""A reply that may be said, with what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Prediction
from tasks.empathetic.reflection.clause import Kind


@dataclass(frozen=True)
class Nearness:
    """How near a reply of a store is to a context; cosines.

    Args:
        selection: of the vectors of reply and context, in -1–1; None of a model without such vectors.
        context_words: of the words of the context and of the one most like it in which the reply was given, in 0–1.
        context_vectors: of the vectors of the context and of the one most like it in which the reply was given.
    """

    selection: float | None = None
    context_words: float = 0.0
    context_vectors: float = 0.0

    @property
    def similarity(self) -> float:
        """The cosine that is told: of the vectors of reply and context, without those of the contexts' words."""
        return self.context_words if self.selection is None else self.selection


@dataclass(frozen=True)
class ReplyPrediction(Prediction):
    """One reply.

    Args:
        tokens: as the model wrote or reads it.
        origin: who wrote it: a `person`, for a conversation of the training data or of a user's file; a language
            model, for this project's store (`written`); the speaker, whose words a reply says back (`reflected`); or
            the `model` that answers. `care` marks the fixed sentence to somebody who speaks of self-harm, whose score
            is 0.
        near: of a stored reply to the context; None of the model's own.
        row: of a stored reply in the store.
        emotion: of the speaker, for which a reflected reply is meant; None for any.
        kind: what a reflected reply for any emotion takes the speaker's words for.
    """

    tokens: tuple[str, ...]
    origin: Literal["model", "person", "written", "reflected", "care"] = "model"
    near: Nearness | None = None
    row: int | None = None
    emotion: str | None = None
    kind: Kind = "plain"

    def as_dict(self) -> Record:
        """Return the reply as the command line prints it."""
        record = super().as_dict() | {"origin": self.origin}
        return record if self.near is None else {**record, "similarity": round(self.near.similarity, 4)}
