"""Replies that say back what the speaker has said, in a frame that answers the feeling.

Reflective listening (Rogers 1951, "Client-Centered Therapy"), by the means of ELIZA (Weizenbaum 1966): the clause is
the speaker's own with the persons changed, the frames were written for this project. Which clause and which frame fit
is left to the ranking, which reads each with the conversation.
"""

from __future__ import annotations

import importlib.resources
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from paddle_dialog.tasks.empathetic.clauses import KINDS, Clause, Kind, clauses_of

ANY = "any"  # in the place of an emotion in the files of frames
CLAUSES = 5  # of a turn, at most
SURE = 0.6  # probability of all bad or all good emotions that tells what a plain clause is to the speaker
LIKELY = 2  # emotions whose frames are tried, beside those for any
FELT = 0.25  # their least probability: comfort for the wrong feeling is worse than none

_BAD = (
    "afraid", "angry", "annoyed", "anxious", "apprehensive", "ashamed", "devastated", "disappointed", "disgusted",
    "embarrassed", "furious", "guilty", "jealous", "lonely", "sad", "terrified",
)  # fmt: skip
_GOOD = (
    "calm", "confident", "content", "excited", "faithful", "grateful", "happy", "hopeful", "impressed", "joyful",
    "prepared", "proud", "trusting",
)  # fmt: skip
# How one feels to whom a clause is that.
_MEANT: dict[Kind, tuple[str, ...]] = {"trouble": _BAD, "good": _GOOD}


@dataclass(frozen=True)
class Reflection:
    """A reply that says a clause back."""

    text: str  # of the reply
    # Of the speaker, to which the frame belongs: one, or none where it is for any.
    emotions: tuple[str, ...]


class Reflector:
    """Says back what a speaker has said.

    Args:
        language: `en` or `zh`.
        emotions: that a model of it predicts.
    """

    def __init__(self, language: str, emotions: Sequence[str]) -> None:
        self._emotions = emotions
        self._language = language
        self._frames = read_frames(language)

    def replies(self, turn: str, felt: np.ndarray, count: int) -> list[Reflection]:
        """Return replies to a turn.

        Args:
            turn: the speaker's last.
            felt: probabilities of the emotions.
            count: replies wanted, at most.

        Returns:
            Each clause in one frame for each of the likeliest emotions and in one for any; then in more of them.
        """
        best = np.argsort(-felt, kind="stable")[:LIKELY]
        likely = [self._emotions[place] for place in best if felt[place] >= FELT]
        meant = self._meant(felt)
        found = sorted(clauses_of(turn, self._language), key=lambda clause: -clause.weight)[:CLAUSES]
        tried: dict[str, Reflection] = {}
        rounds = range(max(map(len, self._frames.values())))
        for number, clause, emotion in product(rounds, found, (*likely, ANY)):
            frames = self._fitting(clause, emotion, meant)
            if number < len(frames):
                frame = frames[(zlib.crc32(clause.text.encode()) + number) % len(frames)]
                text = framed(frame, clause.text)
                tried.setdefault(text, Reflection(text, () if emotion == ANY else (emotion,)))
            if len(tried) == count:
                break
        return [*tried.values()]

    def _fitting(self, clause: Clause, emotion: str, meant: Kind) -> list[str]:
        """Return the frames of a clause for an emotion; those of English are of no kind."""
        kinds: list[Kind] = [meant if clause.kind == "plain" else clause.kind, clause.kind]
        if clause.kind == "good" and meant == "trouble":  # "no warmth at home" has a good word
            kinds = ["plain"]
        if clause.kind == "trouble" and emotion in _BAD:  # joy at what is grim helps nobody
            kinds.append("plain")
        return next((frames for kind in kinds if (frames := self._frames.get((kind, emotion)))), [])

    def _meant(self, felt: np.ndarray) -> Kind:
        """Return what a plain clause is to somebody who feels so."""
        for kind, emotions in _MEANT.items():
            if sum(felt[place] for place, name in enumerate(self._emotions) if name in emotions) >= SURE:
                return kind
        return "plain"


def says_back(turns: Sequence[str], language: str) -> bool:
    """Return whether the second of two turns, the listener's, says back a clause of the first."""
    if len(turns) < 2:
        return False
    said = turns[1].lower()
    return any(clause.text.lower() in said for clause in clauses_of(turns[0], language))


def framed(frame: str, clause: str) -> str:
    """Put a clause into a frame, with a capital at the beginning."""
    text = frame.replace("{}", clause)
    return text[:1].upper() + text[1:]


def read_frames(language: str) -> dict[tuple[Kind, str], list[str]]:
    """Read `texts/frames_*.tsv`: kind of clause, emotion or `any`, frame with {} for the clause."""
    frames: dict[tuple[Kind, str], list[str]] = defaultdict(list)
    path = importlib.resources.files("paddle_dialog.tasks.empathetic") / f"texts/frames_{language}.tsv"
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, emotion, frame = line.split("\t")
        frames[KINDS[KINDS.index(kind)], emotion].append(frame)
    return frames
