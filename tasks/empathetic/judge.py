"""Contexts that a model has read, the scores of replies to them, and the judge that orders the replies.

The judge is a linear map of a few features and the network's states, fitted to blind ratings. It has learned what kind
of reply answers what kind of turn; besides, no reply is given twice. Where no candidate is left, the generator answers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from paddle_dialog.data.batching import pad_batch
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder, Packed
from paddle_dialog.tasks.empathetic.data.language import Language
from paddle_dialog.tasks.empathetic.network.numpy_emo_prepend import NumpyCausalEmoPrepend
from paddle_dialog.tasks.empathetic.replies import ReplyPrediction, is_question, repeats
from paddle_dialog.tasks.empathetic.turns import ACTS
from paddle_dialog.text.vocabulary import Vocabulary

logger = logging.getLogger("paddle_dialog")

ORIGINS = ("model", "written", "reflected")
PER_ORIGIN = 2 + len(ACTS)  # features of each origin: 1, log-probability, acts
SHARED = 5  # features whatever the origin
FEATURES = len(ORIGINS) * PER_ORIGIN + SHARED


@dataclass(frozen=True)
class ReadBatch:
    """Contexts that a model has read together."""

    model: Any  # `NumpyEmoPrepend`, or what answers as it does through Paddle
    state: Any  # before the first word, a row for each context

    def state_of(self, rows: Sequence[int]) -> Any:
        """Return the state of some of the contexts."""
        return self.model.reorder(self.state, np.array(rows, dtype=np.int64))


@dataclass(frozen=True)
class ReadContext:
    """A context as a model reads it."""

    original: Sequence[str]  # turns of the conversation, the speaker's first and last
    turns: Sequence[str]  # the same as they are read: emoji alone are in words
    packed: Packed  # as the encoder packs it
    language: Language  # of the conversation
    given: int | None = None  # the emotion that the user has given, a class id, or None
    predicted: np.ndarray | None = None  # probabilities of the emotions [C]; None before the model has run
    # The contexts that the model has read together, this one among them; None before the model has run.
    batch: ReadBatch | None = None
    row: int = 0  # of this one in the batch
    # The decoder's mean and last outputs [2 D] over replies that were scored, by their tokens.
    states: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)

    @property
    def model(self) -> Any:
        """The model that has read the context."""
        assert self.batch is not None, "the model has not read the context"
        return self.batch.model

    @cached_property
    def state(self) -> Any:
        """The model's state before the first word of a reply to this context alone."""
        assert self.batch is not None, "the model has not read the context"
        return self.batch.state_of([self.row])

    @property
    def emotions(self) -> np.ndarray:
        """Probabilities of the emotions [C]; 1 for the given one, if any."""
        if self.given is not None:
            return np.eye(len(self.language.emotions))[self.given]
        assert self.predicted is not None, "the model has not read the context"
        return self.predicted


def log_probs(
    encoder: DialogueEncoder, replies: Sequence[tuple[str, ...]], context: ReadContext
) -> np.ndarray:
    """Return log p(reply | context) per token, the end token counted, float64 [N].

    Args:
        context: that the model has read; states of the replies are kept there if they cost nothing more.
    """
    if not replies:
        return np.zeros(0)
    model, (source, extended) = context.model, context.packed
    ids = [encoder.target(encoder.numbers(reply), extended).tolist() for reply in replies]
    if isinstance(model, NumpyCausalEmoPrepend):
        totals, states = model.read_replies(context.state, ids)
        context.states.update(zip(replies, states, strict=True))
    else:
        arrays = source.words[None], np.array([len(source.words)])
        totals = text_log_probs(model, *arrays, ids, inputs=[0] * len(ids), state=context.state)
    return totals / [len(reply) + 1 for reply in replies]


def reply_states(
    encoder: DialogueEncoder, replies: Sequence[tuple[str, ...]], context: ReadContext
) -> np.ndarray:
    """Return the decoder's mean output over each reply to a context, then its last output, float32 [N, 2 D]."""
    new = [reply for reply in dict.fromkeys(replies) if reply not in context.states]
    if new:
        numbers = [encoder.target(encoder.numbers(reply), context.packed[1]) for reply in new]
        target, sizes = pad_batch([np.append(Vocabulary.bos_id, ids) for ids in numbers], Vocabulary.pad_id)
        states = context.model.reply_states(context.state, target, sizes)
        context.states.update(zip(new, states, strict=True))
    return np.stack([context.states[reply] for reply in replies])


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
