"""A reply that may be said, with what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Prediction


@dataclass(frozen=True)
class ReplyPrediction(Prediction):
    """One reply.

    Args:
        tokens: as the model wrote or reads it.
        origin: who wrote it: a `person`, for a conversation of the training data; a language model, for this
            project's store (`written`); the speaker, whose words a reply says back (`reflected`); or
            the `model` that answers. `care` marks the fixed sentence to somebody who speaks of self-harm, whose score
            is 0.
        similarity: of a stored reply: the cosine in 0–1 between the words of the context and those of the one most
            like it in which the reply was given; None of others.
        row: of a stored reply in the store.
        emotion: of the speaker, for which a reflected reply is meant; None for any.
    """

    tokens: tuple[str, ...]
    origin: Literal["model", "person", "written", "reflected", "care"] = "model"
    similarity: float | None = None
    row: int | None = None
    emotion: str | None = None

    def as_dict(self) -> Record:
        """Return the reply as the command line prints it."""
        record = super().as_dict() | {"origin": self.origin}
        return record if self.similarity is None else {**record, "similarity": round(self.similarity, 4)}
