"""Proposals: written couplets, how good they are held to be, and a choice of such as differ.

What a model finds likeliest is what the corpus repeats a thousandfold. So a line gains nothing by being likelier than
a good one of a person's usually is, set phrases cost something, and lines that speak of the theme gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from paddle_dialog.data.files import Record, read_lists
from paddle_dialog.tasks.couplet.composing.request import Theme, main_names
from paddle_dialog.tasks.couplet.composing.scrolls import THEME_TABLE, read_association
from paddle_dialog.tasks.couplet.rules import Form, clauses
from paddle_dialog.text.characters import is_hanzi

SHARED_CLAUSE = 4  # characters in a row that no two proposals share
LIKELY_FIRST, LIKELY_SECOND = -1.9, -0.9  # nats per character, beyond which a line gains nothing
SECOND_WEIGHT = 1.2  # of the 下联 relative to the 上联, whose likelihood says less
FIRST_WEIGHT = 0.3  # of the 上联 by itself without that bound; fitted to ratings, as the next
REVERSE_WEIGHT = 0.3  # of the 上联 after its 下联
RELAXED_COST = 1.0  # for each rule that is not kept
SET_PHRASE_COST = 0.25  # for each of them
THEME_WEIGHT = 0.5  # of the association of both lines with the themes, in nats
KNOWN_COST = 0.5  # where a line is in the training corpus as it is
SAD_COST = 0.4  # for each sad character where the occasion is glad


@dataclass(frozen=True)
class Proposal:
    """A whole couplet."""

    first: str
    second: str
    score: float  # mean log-probability per character of the two lines, their ends included
    form: Form  # which rules it keeps
    relaxed: tuple[str, ...] = ()  # rules it could not be held to
    quality: float = 0.0  # what proposals are ordered by
    scrolls: tuple[str, ...] = ()  # 横批 that go with it, best first
    # Positions of requested characters, in which proposals need not differ.
    fixed: frozenset[int] = frozenset()
    set: int | None = None  # number of the proposal, from 1, where one has several couplets
    part: int | None = None  # number of the couplet in it, from 1

    @property
    def scroll(self) -> str:
        """The best 横批."""
        return self.scrolls[0] if self.scrolls else ""

    def __str__(self) -> str:
        note = f"\trelaxed: {', '.join(self.relaxed)}" if self.relaxed else ""
        number = f"{self.set}.{self.part}\t" if self.part is not None else ""
        return f"{number}{self.first}\t{self.second}\t{self.scroll}{note}"

    def as_dict(self) -> Record:
        """Return it as the command line prints it; `relaxed`, `set` and `part` only where they say something."""
        record = {
            "first": self.first,
            "second": self.second,
            "scroll": self.scroll,
            "score": round(self.score, 4),
            "form": self.form.as_dict(),
        }
        record |= {"relaxed": list(self.relaxed)} if self.relaxed else {}
        return record | ({} if self.part is None else {"set": self.set, "part": self.part})


def choose(ranked: Iterable[Proposal], count: int, before: Sequence[Proposal] = ()) -> list[Proposal]:
    """Choose the best proposals that differ.

    No two share a clause of four characters or more (or four characters in a row), or begin with the same word. If
    that leaves too few, the same first word is let pass; four characters in a row never are.
    """
    waiting, chosen = list(ranked), list(before)
    for strict in (True, False):
        for proposal in waiting:
            if len(chosen) == len(before) + count:
                break
            alike = (
                _stretches(proposal) & _stretches(other)
                or (strict and _first_words(proposal) & _first_words(other))
                for other in chosen
            )
            if proposal not in chosen and not any(alike):
                chosen.append(proposal)
    return chosen[len(before) :]


def _stretches(proposal: Proposal) -> set[str]:
    """Return all sequences of four characters within a clause, of both lines."""
    found = set()
    for line in (proposal.first, proposal.second):
        found |= {c[i : i + SHARED_CLAUSE] for c in clauses(line) for i in range(len(c) - SHARED_CLAUSE + 1)}
    return found


def _first_words(proposal: Proposal) -> set[str]:
    """Return the first two characters of both lines, without those that were asked for."""
    both = (proposal.first, proposal.second)
    return {
        "".join(c for i, c in enumerate(line[:2]) if i not in proposal.fixed and is_hanzi(c)) for line in both
    } - {""}


class Scores(NamedTuple):
    """Log-probabilities per token, and a judgement."""

    first: float  # of the 上联, per token that was left to the model
    second: float  # of the 下联 after the 上联
    reverse: float  # of the 上联 after the 下联
    judged: float = 0.0  # the value of a judge fitted to ratings, in the same unit


def quality(
    lines: tuple[str, str], scores: Scores, relaxed: Sequence[str], themes: Sequence[Theme], named: bool
) -> float:
    """Return how good a couplet is held to be; only the order means something.

    Args:
        named: whether it has a name, which is a glad occasion unless a theme says otherwise.
    """
    first, second = min(scores.first, LIKELY_FIRST), min(scores.second, LIKELY_SECOND)
    asked = "".join(word for theme in themes for word in theme.words)
    phrases = sum(
        phrase in line for line in lines for phrase in _lists()["set phrases"] if phrase not in asked
    )
    likely = (first + SECOND_WEIGHT * second) / (1 + SECOND_WEIGHT)
    return (
        likely
        + FIRST_WEIGHT * scores.first
        + REVERSE_WEIGHT * scores.reverse
        + scores.judged
        + THEME_WEIGHT * relevance(lines, themes)
        - RELAXED_COST * len(relaxed)
        - SET_PHRASE_COST * phrases
        - SAD_COST * _sad(lines, themes, named)
    )


def _sad(lines: Sequence[str], themes: Sequence[Theme], named: bool) -> int:
    """Return how many sad characters the lines have, if the occasion is glad."""
    glad = any(main_names().get(theme.words) in _lists()["glad occasions"] for theme in themes)
    if not glad and (themes or not named):
        return 0
    return sum(character in _lists()["sad"] for line in lines for character in line)


def relevance(lines: Sequence[str], themes: Sequence[Theme]) -> float:
    """Return the mean association of the lines with the themes of the table, in nats; 0 without any."""
    numbers = [number for theme in themes if (number := _numbers().get(theme.words)) is not None]
    if not numbers:
        return 0.0
    table = read_association(THEME_TABLE)
    return float(np.mean([table.of(line)[numbers] for line in lines]))


@cache
def _numbers() -> dict[tuple[str, ...], int]:
    """Return the place of each theme in the table, by its words."""
    names = read_association(THEME_TABLE).words
    return {words: names.index(name) for words, name in main_names().items() if name in names}


@cache
def _lists() -> dict[str, frozenset[str]]:
    return read_lists(__package__, "phrases.txt")
