"""Replies written for this project, each for a dialogue act and beside a turn that it answers."""

from __future__ import annotations

import importlib.resources
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from paddle_dialog.tasks.empathetic.dialogue_acts import ACTS, STATEMENT
from paddle_dialog.tasks.empathetic.overlap import units

ANY = 0.25  # agreement of a reply that is meant for any emotion
FELT = 0.6  # least probability of the emotions that a reply is meant for
PROBABLE = 0.4  # least probability of an act whose replies may be said, but for the likeliest
LIKE = 0.35  # least similarity of the turns of a reply that is not general


@dataclass(frozen=True)
class WrittenReply:
    """A reply that is right for nearly everybody who says such a thing."""

    act: int  # of the turns that it answers, a place in `ACTS`
    turn: str  # one of them
    text: str  # of the reply
    # Of the speaker for which a reply to a statement is meant; empty where it is for any.
    emotions: tuple[str, ...] = ()
    # Whether it fits nearly every turn of the act; others assume what only turns like theirs have said.
    general: bool = False


@dataclass(frozen=True)
class Fitting:
    """A written reply that may answer a turn."""

    reply: WrittenReply  # the reply
    similarity: float  # of the turn and the one beside the reply, in 0–1
    agreement: float  # of the speaker's emotion and those for which the reply is meant, see `agreement`


class WrittenReplies:
    """The replies of a language, searched by act, words and emotion.

    Args:
        language: `en` or `zh`.
        emotions: that a model of it predicts.

    Attributes:
        replies: all of them.
    """

    def __init__(self, language: str, emotions: Sequence[str]) -> None:
        self.replies = read_written(language)
        bags = [_bag(reply.turn) for reply in self.replies]
        found = Counter(gram for bag in bags for gram in bag)
        self._idf = {gram: math.log(len(bags) / count) for gram, count in found.items()}
        # Of each gram the replies whose turn has it, with its weight.
        self._rows: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for row, bag in enumerate(bags):
            for gram, weight in self._unit(bag).items():
                self._rows[gram].append((row, weight))
        self._acts = np.array([reply.act for reply in self.replies])  # [N]
        self._meant = np.array(
            [[name in reply.emotions for name in emotions] for reply in self.replies]
        )  # [N, C]
        self._for_any = ~self._meant.any(axis=1)  # [N]
        self._general = np.array([reply.general for reply in self.replies])  # [N]

    def fitting(
        self, turn: str, acts: np.ndarray, felt: np.ndarray, count: int | None = None
    ) -> list[Fitting]:
        """Return the replies that fit a turn best by act, words and emotion.

        A reply that is not general needs a turn like its own, and one for an emotion needs that emotion.

        Args:
            turn: the speaker's newest.
            acts: probabilities of its acts [A].
            felt: probabilities of the emotions [C].
            count: how many, at most; None returns all, whether they fit or not.
        """
        similarities = np.zeros(len(self.replies))  # [N], cosines of TF-IDF
        for gram, weight in self._unit(_bag(turn)).items():
            for row, other in self._rows.get(gram, ()):
                similarities[row] += weight * other
        agreements = np.where(self._for_any, ANY, self._meant @ felt)  # [N], as `agreement` has it
        values = acts[self._acts] + similarities + agreements * (self._acts == STATEMENT)
        if count is not None:
            is_like = self._general | (similarities >= LIKE)
            is_felt = self._for_any | (agreements >= FELT)
            fits = is_like & is_felt & (acts[self._acts] >= min(PROBABLE, acts.max()))
            values[~fits] = -np.inf
            count = min(count, int(fits.sum()))
        best = np.argsort(-values, kind="stable")[:count]
        return [Fitting(self.replies[row], float(similarities[row]), float(agreements[row])) for row in best]

    def _unit(self, bag: set[str]) -> dict[str, float]:
        """Return the IDF of each known n-gram, scaled to unit length."""
        weights = {gram: self._idf[gram] for gram in bag if gram in self._idf}
        norm = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
        return {gram: weight / norm for gram, weight in weights.items()}


def agreement(meant: Sequence[str], felt: np.ndarray, emotions: Sequence[str]) -> float:
    """Return the probability [C] of the emotions for which a reply is meant, in 0–1; `ANY` where it is for any."""
    if not meant:
        return ANY
    return float(sum(felt[emotions.index(name)] for name in meant))


def read_written(language: str) -> list[WrittenReply]:
    """Read `texts/written_*.jsonl`: act, turn and reply a line, and perhaps `emotions` and `general`."""
    path = importlib.resources.files("paddle_dialog.tasks.empathetic") / f"texts/written_{language}.jsonl"
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        WrittenReply(
            ACTS.index(line["act"]),
            line["turn"],
            line["reply"],
            tuple(line.get("emotions", ())),
            line.get("general", False),
        )
        for line in lines
    ]


def _bag(turn: str) -> set[str]:
    """Return the words and pairs of words of a turn; of Chinese its characters and pairs of them."""
    words = units(turn)
    return {*words, *("_".join(pair) for pair in pairwise(words))}
