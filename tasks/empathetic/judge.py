"""Contexts that a model has read, the scores of replies to them, and the judge that orders the replies.

The judge is a linear map of a few features and of the network's states, fitted to blind ratings. It has learned what
kind of reply answers what kind of turn; besides, no reply is given twice. Where none is left, the generator answers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder, Packed
from paddle_dialog.tasks.empathetic.data.language import Language
from paddle_dialog.tasks.empathetic.replies import ReplyPrediction, is_question, repeats
from paddle_dialog.tasks.empathetic.turns import ACTS

logger = logging.getLogger("paddle_dialog")

ORIGINS = ("model", "written", "reflected")
PER_ORIGIN = 2 + len(ACTS)  # features of each origin: 1, log-probability, acts
SHARED = 5  # features whatever the origin
FEATURES = len(ORIGINS) * PER_ORIGIN + SHARED


@dataclass(frozen=True)
class ReadContext:
    """A context as a model reads it."""

    original: Sequence[str]  # turns of the conversation, the speaker's first and last
    turns: Sequence[str]  # the same as they are read: emoji alone are in words
    packed: Packed  # as the encoder packs it
    language: Language  # of the conversation
    given: int | None = None  # the emotion that the user has given, a class id, or None
    # What follows is None before the model has run.
    predicted: np.ndarray | None = None  # probabilities of the emotions [C]
    model: Any = None  # `NumpyEmoPrepend`, or what answers as it does through Paddle
    batch: Any = None  # its state before the first word, a row for each context that it has read together
    row: int = 0  # of this context

    @property
    def state(self) -> Any:
        """The model's state before the first word of a reply to this context alone."""
        return self.model.reorder(self.batch, np.array([self.row]))

    @property
    def emotions(self) -> np.ndarray:
        """Probabilities of the emotions [C]; 1 for the given one, if any."""
        if self.given is not None:
            return np.eye(len(self.language.emotions))[self.given]
        assert self.predicted is not None, "the model has not read the context"
        return self.predicted


def scored(
    encoder: DialogueEncoder, context: ReadContext, candidates: Sequence[ReplyPrediction]
) -> tuple[list[ReplyPrediction], np.ndarray]:
    """Let the model read replies to a context, one or more.

    Returns:
        The candidates with their tokens and the mean of log p(token | context), the end token counted; and the
        decoder's mean output over each, then its last one, float32 [N, 2 D].
    """
    replies = [context.language.tokens_of(one.text) for one in candidates]
    ids = [encoder.target(encoder.numbers(tokens), context.packed[1]).tolist() for tokens in replies]
    totals, states = context.model.read_replies(context.state, ids)
    found = [
        replace(one, score=total / (len(tokens) + 1), tokens=tokens)
        for one, total, tokens in zip(candidates, totals.tolist(), replies, strict=True)
    ]
    return found, states


def ordered(
    judge: Judge,
    encoder: DialogueEncoder,
    context: ReadContext,
    acts: np.ndarray,
    candidates: Sequence[ReplyPrediction],
) -> list[ReplyPrediction]:
    """Return candidates with their scores, best first; what repeats an earlier reply comes last.

    Args:
        judge: of the numbers that `measured` returns.
        acts: probabilities of the acts of the newest turn [A].
    """
    if not candidates:
        return []
    found, states = scored(encoder, context, candidates)
    values = judge(measured(context, acts, found, states))  # [N]
    return first_new([found[place] for place in np.argsort(-values, kind="stable")], context)


def first_new(replies: Sequence[ReplyPrediction], context: ReadContext) -> list[ReplyPrediction]:
    """Move what the listener has said before to the end; otherwise the order stays."""
    return sorted(replies, key=lambda one: repeats(one.text, context.turns, context.language.name))


def measured(
    context: ReadContext, acts: np.ndarray, candidates: Sequence[ReplyPrediction], states: np.ndarray
) -> np.ndarray:
    """Return the judge's inputs for candidates: features, the network's states, and those again by origin.

    The states of written replies and of reflections have weights of their own too.

    Args:
        acts: probabilities of the acts of the newest turn [A].
        candidates: and their states [N, 2 D], from `scored`.

    Returns:
        float64 [N, FEATURES + 6 D], D the model's width.
    """
    is_written, is_reflected = (
        np.array([[one.origin == origin] for one in candidates]) for origin in ("written", "reflected")
    )  # [N, 1] each
    asked = sum(map(is_question, context.turns[-2:-6:-2]))  # of the listener's last two turns
    features = np.zeros((len(candidates), FEATURES))
    for row, one in zip(features, candidates, strict=True):
        place = ORIGINS.index(one.origin) * PER_ORIGIN
        row[place : place + PER_ORIGIN] = 1.0, one.score, *acts
        act = 0.0 if one.act is None else float(acts[one.act])
        asks = float(is_question(one.text))
        row[-SHARED:] = act, one.similarity, one.agreement, asks, asks * asked
    return np.concatenate([features, states, states * is_written, states * is_reflected], axis=1)


def judged_width(width: int) -> int:
    """Return the number of a judge's inputs for a model of a width."""
    return FEATURES + 6 * width


def judge_of_bundle(config: EmpatheticConfig, files: Mapping[str, bytes]) -> Judge | None:
    """Return the judge that a config asks for; None where it wants none, or the bundle has none."""
    wanted = config.replies.judge
    if wanted is False:
        return None
    if JUDGE in files and isinstance(config.model, CausalTransformerConfig):
        return Judge.from_bytes(files[JUDGE], judged_width(config.model.width))
    missing = f"these weights have no judge of replies ({JUDGE})"
    if wanted:
        raise UserError(
            f"replies.judge: {missing}; fit one (tools/weights/empathetic), or set -o replies.judge=false to let the "
            "generator answer alone"
        )
    logger.info("%s; the generator answers alone", missing)
    return None
