"""The answer to a conversation: an emotion and replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Prediction
from tasks.empathetic.emotion.labels import EMOTIONS

TOP_EMOTIONS = 5


@dataclass(frozen=True)
class ReplyPrediction(Prediction):
    """One reply.

    Args:
        tokens: as the model wrote or reads it.
        origin: who wrote it: a `person`, for a conversation of the training data or of a user's file, or the
            `model`.
        similarity: cosine of the vectors of the context and of a person's reply, in -1–1.
        row: row of a person's reply in the store.
    """

    tokens: tuple[str, ...]
    origin: Literal["model", "person"] = "model"
    similarity: float | None = None
    row: int | None = None

    def as_dict(self) -> Record:
        """Return the reply as the command line prints it."""
        record = super().as_dict() | {"origin": self.origin}
        return record if self.similarity is None else {**record, "similarity": round(self.similarity, 4)}


def origin_note(record: Mapping[str, Any]) -> str:
    """Return the note beside a reply of `ReplyPrediction.as_dict`; empty for one of the model's own."""
    return f" (from a person, {record['similarity']:.2f})" if record["origin"] == "person" else ""


@dataclass(frozen=True)
class Answer:
    """The answer to a context.

    Args:
        context: its turns.
        emotion: the most probable emotion, or the one that was given; None where none is likely enough, see
            `EmpatheticDecodingConfig.clear_emotion`.
        probabilities: of all emotions, as predicted [32].
        predictions: the replies, best first.
    """

    context: Sequence[str]
    emotion: str | None
    probabilities: np.ndarray
    predictions: Sequence[ReplyPrediction]

    @property
    def predicted_emotion(self) -> str:
        """The most probable emotion, even if another one was given."""
        return EMOTIONS[int(self.probabilities.argmax())]

    def as_dict(self) -> Record:
        """Return the answer as the command line prints it."""
        top = np.argsort(-self.probabilities, kind="stable")[:TOP_EMOTIONS]
        return {
            "context": list(self.context),
            "emotion": self.emotion,
            "emotions": {EMOTIONS[i]: round(float(self.probabilities[i]), 4) for i in top},
            "predictions": [prediction.as_dict() for prediction in self.predictions],
        }
