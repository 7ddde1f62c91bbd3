"""What the model makes of a conversation: an emotion and replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.empathetic.emotions import EMOTIONS

TOP_EMOTIONS = 5


@dataclass(frozen=True)
class Prediction:
    """One reply.

    Args:
        text: for reading.
        score: log-probability per token, end token included.
        tokens: as the model wrote it.
    """

    text: str
    score: float
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What the model makes of a context.

    Args:
        context: its turns.
        emotion: the most probable emotion, or the one that was given.
        probabilities: of all emotions, as predicted [32].
        predictions: the replies, best first.
    """

    context: Sequence[str]
    emotion: str
    probabilities: np.ndarray
    predictions: Sequence[Prediction]

    @property
    def predicted_emotion(self) -> str:
        """The most probable emotion, whatever was given."""
        return EMOTIONS[int(self.probabilities.argmax())]

    def as_dict(self) -> dict[str, Any]:
        """The answer as the command line prints it."""
        top = np.argsort(-self.probabilities, kind="stable")[:TOP_EMOTIONS]
        return {
            "context": list(self.context),
            "emotion": self.emotion,
            "emotions": {EMOTIONS[i]: round(float(self.probabilities[i]), 4) for i in top},
            "predictions": [{"text": p.text, "score": round(p.score, 4)} for p in self.predictions],
        }
