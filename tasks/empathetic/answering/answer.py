"""The answer to a conversation: an emotion and replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paddle_dialog.data.records import Record
from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.selection.candidate import ReplyPrediction

TOP_EMOTIONS = 5


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
