"""Which reply is said: a linear judge over a few features and the network's states, fitted to blind ratings.

Candidates come from `written` and from `reflection`. What kind of reply answers what kind of turn is what the judge
has learned; beside it stands that nothing is said twice. Where no candidate is left, the generator answers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.empathetic.answer import ReplyPrediction
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder
from paddle_dialog.tasks.empathetic.dialogue_acts import ACTS, DIALOGUE_ACTS, ActClassifier
from paddle_dialog.tasks.empathetic.overlap import is_question, repeats
from paddle_dialog.tasks.empathetic.reading import ReadContext, reply_states

logger = logging.getLogger("paddle_dialog")

ORIGINS = ("model", "written", "reflected")
OF_ORIGIN = 2 + len(ACTS)  # features of each origin: that it is the one, log-probability, acts
PLAIN = 5  # features of all candidates alike
FEATURES = len(ORIGINS) * OF_ORIGIN + PLAIN


@dataclass(frozen=True)
class ReplyJudge:
    """Orders the candidates for a context."""

    acts: ActClassifier  # tells the dialogue act of a turn
    judge: Judge  # of the numbers that `measured` returns

    def order(
        self,
        encoder: DialogueEncoder,
        context: ReadContext,
        acts: np.ndarray,
        candidates: Sequence[ReplyPrediction],
    ) -> list[ReplyPrediction]:
        """Return candidates, every text once, best first; what repeats an earlier reply comes last.

        Args:
            encoder: of the model.
            context: what is answered.
            acts: probabilities of the acts of its newest turn [A].
            candidates: replies to it.
        """
        found = list({one.text: one for one in candidates}.values())
        if len(found) < 2:
            return found
        values = self.judge(measured(encoder, context, acts, found))  # [N]
        return first_new([found[place] for place in np.argsort(-values, kind="stable")], context)


def first_new(replies: Sequence[ReplyPrediction], context: ReadContext) -> list[ReplyPrediction]:
    """Put last what the listener has said before; else the order stays."""
    return sorted(replies, key=lambda one: repeats(one.text, context.turns, context.language.name))


def measured(
    encoder: DialogueEncoder, context: ReadContext, acts: np.ndarray, candidates: Sequence[ReplyPrediction]
) -> np.ndarray:
    """Return what a judge reads of candidates: features, the network's states, and those again by origin.

    What speaks for a generated reply does not for one that was prepared, so the states of written replies and of
    reflections have weights of their own too.

    Args:
        encoder: of the model.
        context: of the candidates.
        acts: probabilities of the acts of the newest turn [A].
        candidates: at least one.

    Returns:
        float64 [N, FEATURES + 6 D], D the model's width.
    """
    states = reply_states(encoder, [one.tokens for one in candidates], context)  # [N, 2 D]
    is_written, is_reflected = (
        np.array([[one.origin == origin] for one in candidates]) for origin in ("written", "reflected")
    )  # [N, 1] each
    features = np.array([_features(context, acts, one) for one in candidates])  # [N, FEATURES]
    return np.concatenate([features, states, states * is_written, states * is_reflected], axis=1)


def judged_width(width: int) -> int:
    """Return how many numbers of a reply a judge reads, of a model of a width."""
    return FEATURES + 6 * width


def judge_of_bundle(config: EmpatheticConfig, files: Mapping[str, bytes]) -> ReplyJudge | None:
    """Return the judge that a config asks for.

    Args:
        config: whether it is wanted, and how wide its model is.
        files: of the bundle.

    Returns:
        None where the config wants none, or leaves the choice to a bundle that has none.

    Raises:
        UserError: the judge is required but missing, or is of another model.
    """
    wanted = config.replies.judge
    if wanted is False:
        return None
    if JUDGE in files and DIALOGUE_ACTS in files:
        acts = ActClassifier.from_bytes(files[DIALOGUE_ACTS])
        return ReplyJudge(acts, Judge.from_bytes(files[JUDGE], judged_width(config.model.width)))
    missing = f"these weights have no judge of replies ({JUDGE}, {DIALOGUE_ACTS})"
    if wanted:
        raise UserError(
            f"replies.judge: {missing}; fit one (docs/replies.md), or set -o replies.judge=false to let the "
            "generator answer alone"
        )
    logger.info("%s; the generator answers alone", missing)
    return None


def _features(context: ReadContext, acts: np.ndarray, one: ReplyPrediction) -> np.ndarray:
    """Return the features of one candidate [FEATURES]."""
    row = np.zeros(FEATURES)
    place = ORIGINS.index(one.origin) * OF_ORIGIN
    row[place : place + OF_ORIGIN] = 1.0, one.score, *acts
    asks = float(is_question(one.text))
    asked = sum(map(is_question, context.turns[-2:-6:-2]))  # of the listener's last two turns
    act = 0.0 if one.act is None else float(acts[one.act])
    row[-PLAIN:] = act, one.similarity, one.agreement, asks, asks * asked
    return row
