"""The judge of replies: the order of the candidates for a turn.

A linear map of a few features and the network's states, fitted to blind ratings, has learned what kind of reply
answers what kind of turn; besides, no reply is given twice. Where no candidate is left, the generator answers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder
from paddle_dialog.tasks.empathetic.reading import ReadContext, reply_states
from paddle_dialog.tasks.empathetic.replies import ReplyPrediction, is_question, repeats
from paddle_dialog.tasks.empathetic.turns import ACTS

logger = logging.getLogger("paddle_dialog")

ORIGINS = ("model", "written", "reflected")
PER_ORIGIN = 2 + len(ACTS)  # features of each origin: 1, log-probability, acts
SHARED = 5  # features whatever the origin
FEATURES = len(ORIGINS) * PER_ORIGIN + SHARED


def ordered(
    judge: Judge,
    encoder: DialogueEncoder,
    context: ReadContext,
    acts: np.ndarray,
    candidates: Sequence[ReplyPrediction],
) -> list[ReplyPrediction]:
    """Return candidates, every text once, best first; what repeats an earlier reply comes last.

    Args:
        judge: of the numbers that `measured` returns.
        acts: probabilities of the acts of the newest turn [A].
    """
    found = list({one.text: one for one in candidates}.values())
    if len(found) < 2:
        return found
    values = judge(measured(encoder, context, acts, found))  # [N]
    return first_new([found[place] for place in np.argsort(-values, kind="stable")], context)


def first_new(replies: Sequence[ReplyPrediction], context: ReadContext) -> list[ReplyPrediction]:
    """Move what the listener has said before to the end; otherwise the order stays."""
    return sorted(replies, key=lambda one: repeats(one.text, context.turns, context.language.name))


def measured(
    encoder: DialogueEncoder, context: ReadContext, acts: np.ndarray, candidates: Sequence[ReplyPrediction]
) -> np.ndarray:
    """Return the judge's inputs for candidates: features, the network's states, and those again by origin.

    The states of written replies and of reflections have weights of their own too.

    Args:
        acts: probabilities of the acts of the newest turn [A].

    Returns:
        float64 [N, FEATURES + 6 D], D the model's width.
    """
    states = reply_states(encoder, [one.tokens for one in candidates], context)  # [N, 2 D]
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
    if JUDGE in files:
        return Judge.from_bytes(files[JUDGE], judged_width(config.model.width))
    missing = f"these weights have no judge of replies ({JUDGE})"
    if wanted:
        raise UserError(
            f"replies.judge: {missing}; fit one (tools/weights/empathetic), or set -o replies.judge=false to let the "
            "generator answer alone"
        )
    logger.info("%s; the generator answers alone", missing)
    return None
