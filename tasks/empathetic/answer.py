"""The answer to a conversation: an emotion and replies, with what is known of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Prediction
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.dialogue_acts import Act

TOP_EMOTIONS = 5


@dataclass(frozen=True)
class ReplyPrediction(Prediction):
    """One reply."""

    tokens: tuple[str, ...]  # as the model wrote or reads it
    # Who wrote it: the `model` that answers; this project beforehand (`written`); or the speaker, whose words
    # the reply says back (`reflected`). `care` marks the fixed sentence to somebody in danger, whose score is
    # 0.
    origin: Literal["model", "written", "reflected", "care"] = "model"
    act: int | None = None  # which a written reply answers, a place in `ACTS`; None of others
    similarity: float = 0.0  # of the newest turn and the one beside a written reply, in 0–1; 0 of others
    # How far the speaker feels what a prepared reply is meant for, in 0–1; 0 of others.
    agreement: float = 0.0
    emotion: str | None = None  # that the speaker feels, as `Answer.emotion`; set by `predict`

    def as_dict(self) -> Record:
        """Return the reply as the command line prints it."""
        return super().as_dict() | {"origin": self.origin}


def origin_note(record: Mapping[str, Any]) -> str:
    """Return the note beside a reply of `ReplyPrediction.as_dict`; empty for one of the model's own."""
    notes = {"reflected": " (in your own words)", "written": " (written for this project)"}
    return notes.get(record["origin"], "")


@dataclass(frozen=True)
class Answer:
    """The answer to a context."""

    context: Sequence[str]  # its turns
    # The most probable emotion, or the one that was given; None where none is likely enough, see
    # `EmpatheticDecodingConfig.clear_emotion`.
    emotion: str | None
    probabilities: np.ndarray  # of all emotions, as predicted [C]
    predictions: Sequence[ReplyPrediction]  # the replies, best first
    emotions: Sequence[str] = EMOTIONS  # that the probabilities are of [C]
    act: Act | None = None  # the dialogue act of the newest turn; None where no judge was asked
    # The newest turn speaks of danger, and a fixed sentence answers it; no emotion is told then.
    care: bool = False
    # A sentence to the speaker, whose newest turn is in a language that the model does not read.
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
        if self.act is not None:
            record["act"] = self.act
        if self.care:
            record["care"] = True
        if self.hint is not None:
            record["hint"] = self.hint
        return record
