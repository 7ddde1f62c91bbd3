"""What the judge of replies reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasks.empathetic.data.encoding import DialogueEncoder
from tasks.empathetic.reading.context import ReadContext
from tasks.empathetic.reading.scoring import JudgedModel, reply_states
from tasks.empathetic.selection.candidate import ReplyPrediction


def judged_width(width: int) -> int:
    """Return how many numbers of a reply a judge reads, of a model of a width."""
    return 4 * width


def judged_states(
    model: JudgedModel, encoder: DialogueEncoder, replies: Sequence[ReplyPrediction], context: ReadContext
) -> np.ndarray:
    """Return the decoder's mean and last outputs, and again those of reflected replies, else 0, float32 [N, 4 D].

    So reflections, which begin with words that are right in any case, are judged by weights of their own.

    Args:
        model: that reads them.
        encoder: of the model.
        replies: to the context; at least one.
        context: of them.
    """
    states = reply_states(model, encoder, [one.tokens for one in replies], context.packed)  # [N, 2 D]
    is_reflected = np.array([[one.origin == "reflected"] for one in replies])  # [N, 1]
    return np.concatenate([states, states * is_reflected], axis=1)
