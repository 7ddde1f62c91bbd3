"""The answer to a conversation: an emotion and replies, with what is known of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Prediction
from tasks.empathetic.data.emotions import EMOTIONS

TOP_EMOTIONS = 5


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


def origin_note(record: Mapping[str, Any]) -> str:
    """Return the note beside a reply of `ReplyPrediction.as_dict`; empty for one of the model's own."""
    if record["origin"] == "reflected":
        return " (in your own words)"
    note = {"person": "from a person", "written": "written for this project"}.get(record["origin"])
    return "" if note is None else f" ({note}, {record['similarity']:.2f})"


@dataclass(frozen=True)
class Answer:
    """The answer to a context.

    Args:
        context: its turns.
        emotion: the most probable emotion, or the one that was given; None where none is likely enough, see
            `EmpatheticDecodingConfig.clear_emotion`.
        probabilities: of all emotions, as predicted [C].
        predictions: the replies, best first.
        emotions: that the probabilities are of [C].
        care: the newest turn speaks of self-harm, and the fixed sentence answers it; no emotion is told then.
        hint: a sentence to the speaker, whose newest turn is in a language that the model does not read.
    """

    context: Sequence[str]
    emotion: str | None
    probabilities: np.ndarray
    predictions: Sequence[ReplyPrediction]
    emotions: Sequence[str] = EMOTIONS
    care: bool = False
    hint: str | None = None

    @property
    def predicted_emotion(self) -> str:
        """The most probable emotion, even if another one was given."""
        return self.emotions[int(self.probabilities.argmax())]

    def as_dict(self) -> Record:
        """Return the answer as the command line prints it."""
        top = np.argsort(-self.probabilities, kind="stable")[: 0 if self.care else TOP_EMOTIONS]
        record: Record = {
            "context": list(self.context),
            "emotion": self.emotion,
            "emotions": {self.emotions[i]: round(float(self.probabilities[i]), 4) for i in top},
            "predictions": [prediction.as_dict() for prediction in self.predictions],
        }
        if self.care:
            record["care"] = True
        if self.hint is not None:
            record["hint"] = self.hint
        return record
