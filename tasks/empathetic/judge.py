"""The judge of replies: the dialogue act of a turn, and the order of the candidates for it.

What answers bad news does not answer a question, a complaint or a farewell, so a linear classifier over n-grams
predicts the act. A linear judge over a few features and the network's states, fitted to blind ratings, has learned
what kind of reply answers what kind of turn; besides, no reply is given twice. Where no candidate is left, the
generator answers.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.folder import file_errors
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder
from paddle_dialog.tasks.empathetic.reading import ReadContext, reply_states
from paddle_dialog.tasks.empathetic.replies import ACTS, ReplyPrediction, is_question, repeats

logger = logging.getLogger("paddle_dialog")

DIALOGUE_ACTS = "dialogue_acts.safetensors"  # in a bundle
BUCKETS = 1 << 14
OPENING = 3  # words of the first sentence that are features of their own
LONGEST = 6  # classes of length, by powers of two

ORIGINS = ("model", "written", "reflected")
PER_ORIGIN = 2 + len(ACTS)  # features of each origin: 1, log-probability, acts
SHARED = 5  # features whatever the origin
FEATURES = len(ORIGINS) * PER_ORIGIN + SHARED

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[\u3400-\u9fff]|[?？!！.。]+|[^\s\w]")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*")
_TABLE = "table"


class ActClassifier:
    """Predicts the dialogue act of a turn.

    Args:
        table: logits of the acts for each n-gram, float32 [BUCKETS, A].
    """

    def __init__(self, table: np.ndarray) -> None:
        self._table = table

    def __call__(self, turn: str) -> np.ndarray:
        """Return the probabilities of `ACTS` for a turn, float64 [A]."""
        buckets, weights = act_features(turn)
        logits = weights @ self._table[buckets]  # [A]
        shares = np.exp(logits - logits.max())
        probabilities: np.ndarray = shares / shares.sum()
        return probabilities

    def to_bytes(self) -> bytes:
        """Return the file of a bundle."""
        return save({_TABLE: self._table.astype(np.float16)})

    @classmethod
    def from_bytes(cls, content: bytes, where: str = DIALOGUE_ACTS) -> ActClassifier:
        """Read what `to_bytes` made."""
        with file_errors(where, "classifier of dialogue acts", "fit it anew"):
            table = load(content)[_TABLE].astype(np.float32)
        if table.shape != (BUCKETS, len(ACTS)):
            raise UserError(
                f"{where}: has {table.shape} weights, and {BUCKETS, len(ACTS)} are needed; fit it anew"
            )
        return cls(table)


def act_features(turn: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the buckets of the n-grams of a turn and their weights, a vector of unit length.

    The n-grams are of one to three words, in Chinese of characters; the last sentence and the first words count once
    more, since a turn asks or complains there.
    """
    text = turn.lower().replace("’", "'")
    words = ["<s>", *_WORD.findall(text), "</s>"]
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence] or [""]
    grams = [
        *words[1:-1],
        *("_".join(pair) for pair in pairwise(words)),
        *("_".join(words[place : place + 3]) for place in range(len(words) - 2)),
        *(f"last:{word}" for word in _WORD.findall(sentences[-1])),
        *(f"first:{word}" for word in _WORD.findall(sentences[0])[:OPENING]),
        f"length:{min(LONGEST, int(log2(len(words) - 1)))}",
    ]
    hashes = [zlib.crc32(gram.encode()) % BUCKETS for gram in grams]
    buckets, counts = np.unique(hashes, return_counts=True)
    weights = 1 + np.log(counts)
    return buckets, weights / np.linalg.norm(weights)


@dataclass(frozen=True)
class ReplyJudge:
    """Orders the candidates for a context."""

    acts: ActClassifier  # of the newest turn
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
            acts: probabilities of the acts of its newest turn [A].
        """
        found = list({one.text: one for one in candidates}.values())
        if len(found) < 2:
            return found
        values = self.judge(measured(encoder, context, acts, found))  # [N]
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
    features = np.array([_features(context, acts, one) for one in candidates])  # [N, FEATURES]
    return np.concatenate([features, states, states * is_written, states * is_reflected], axis=1)


def judged_width(width: int) -> int:
    """Return the number of a judge's inputs for a model of a width."""
    return FEATURES + 6 * width


def judge_of_bundle(config: EmpatheticConfig, files: Mapping[str, bytes]) -> ReplyJudge | None:
    """Return the judge that a config asks for; None where it wants none, or the bundle has none."""
    wanted = config.replies.judge
    if wanted is False:
        return None
    if JUDGE in files and DIALOGUE_ACTS in files:
        acts = ActClassifier.from_bytes(files[DIALOGUE_ACTS])
        return ReplyJudge(acts, Judge.from_bytes(files[JUDGE], judged_width(config.model.width)))
    missing = f"these weights have no judge of replies ({JUDGE}, {DIALOGUE_ACTS})"
    if wanted:
        raise UserError(
            f"replies.judge: {missing}; fit one (tools/weights/empathetic), or set -o replies.judge=false to let the "
            "generator answer alone"
        )
    logger.info("%s; the generator answers alone", missing)
    return None


def _features(context: ReadContext, acts: np.ndarray, one: ReplyPrediction) -> np.ndarray:
    """Return the features of one candidate [FEATURES]."""
    row = np.zeros(FEATURES)
    place = ORIGINS.index(one.origin) * PER_ORIGIN
    row[place : place + PER_ORIGIN] = 1.0, one.score, *acts
    asks = float(is_question(one.text))
    asked = sum(map(is_question, context.turns[-2:-6:-2]))  # of the listener's last two turns
    act = 0.0 if one.act is None else float(acts[one.act])
    row[-SHARED:] = act, one.similarity, one.agreement, asks, asks * asked
    return row
