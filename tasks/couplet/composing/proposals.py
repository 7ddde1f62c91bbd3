"""Proposals: written couplets, how good they are held to be, a choice of such as differ, and their 横批.

What a model finds likeliest is what the corpus repeats a thousandfold. So a line gains nothing by being likelier than
a good one of a person's usually is, set phrases cost something, and lines that speak of the theme gain.

A 横批, the scroll of four characters over a couplet, is chosen from a list of traditional ones. Its score is the mean
association of its two words with the characters of the couplet, and that of the occasion it belongs to: couplets on a
wedding attract the words of all its scrolls. The tables of associations, of the words of scrolls and of themes, were
counted over a training corpus (`tools/weights/couplet/associations.py`); they have no line of it.
"""

from __future__ import annotations

import importlib.resources
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from paddle_dialog.data.files import Record, read_lists
from paddle_dialog.tasks.couplet.composing.request import Theme, main_names, read_rows
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
            if not any(alike):
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


MOURNING = "挽联"  # an occasion whose scrolls go with nothing else
OCCASION_WEIGHT = 2.0
ASKED_BONUS = 0.5  # nats for a scroll of the occasion that was asked for
LIKE = 3  # characters that no two of the chosen share
# Animals of the years, and ages: a scroll has one only where the couplet has it.
_ANIMALS = "鼠 牛 兔 蛇 羊 猴 鸡 狗 犬 猪 古稀 百岁"
# What a scroll names needs to stand in the request or in the couplet.
_NAMED = "开业 开张 开市 上梁 竖柱"
# Of a composed couplet: occasions that a scroll is for alone, and seasons that it names, only if they were asked for.
_FEASTS = ("春节", "婚庆", "寿诞", "生育", "乔迁", "元宵", "端午", "中秋", "重阳", "国庆")
_SEASONS = "春夏秋冬"
STEPS = 40  # of one byte to a nat, in a table of associations
SCROLL_TABLE, THEME_TABLE = "scrolls.npz", "themes.npz"


@dataclass(frozen=True)
class Association:
    """How much more often a character occurs in couplets that have a word than in others."""

    words: tuple[str, ...]  # W words
    characters: str  # C characters
    # max(0, log p(character | word) / p(character)) in steps of 1/40, uint8 [C, W]; 0 where it is weak.
    steps: np.ndarray

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {character: row for row, character in enumerate(self.characters)}

    def of(self, line: str) -> np.ndarray:
        """Return the mean association of the hanzi of a text with each word, in nats, float32 [W]."""
        rows = [self._rows.get(character, -1) for character in line if is_hanzi(character)]
        known = self.steps[[row for row in rows if row >= 0]]  # [T, W]
        return known.sum(axis=0, dtype=np.float32) / np.float32(STEPS * max(1, len(rows)))


@cache
def read_association(name: str) -> Association:
    """Read `SCROLL_TABLE` or `THEME_TABLE`; the words of the latter are the main names of the themes."""
    content = (importlib.resources.files(__package__) / name).read_bytes()
    with np.load(io.BytesIO(content)) as arrays:
        return Association(tuple(arrays["words"].tolist()), str(arrays["characters"]), arrays["steps"])


@cache
def occasions() -> dict[str, tuple[str, ...]]:
    """Return each occasion with its scrolls, see `scrolls.txt`."""
    rows = (line.partition(":") for line in read_rows("scrolls.txt"))
    return {occasion: tuple(scrolls.split()) for occasion, _, scrolls in rows}


@cache
def all_scrolls() -> tuple[str, ...]:
    """Return every scroll once."""
    return tuple(dict.fromkeys(scroll for scrolls in occasions().values() for scroll in scrolls))


def words_of(scroll: str) -> tuple[str, str]:
    """Return the two words of a scroll."""
    return scroll[:2], scroll[2:]


@dataclass(frozen=True)
class Scroll:
    """A 横批 of four characters, and how well it goes with the couplet, in nats; only the order means something."""

    text: str
    score: float

    def as_dict(self) -> dict[str, str | float]:
        """Return it as the server prints it."""
        return {"text": self.text, "score": round(self.score, 4)}


def choose_scrolls(
    first: str, second: str, count: int = 5, asked: Sequence[str] = (), wished: str | None = None
) -> list[Scroll]:
    """Choose scrolls for a couplet, best first.

    No two share three characters, and none is part of the couplet. Those of mourning, temples, ancestral halls, the
    kitchen god and hospitals need to be asked for; those of a year's animal need that animal. Mourning has no others.

    Args:
        asked: occasions that the couplet is known to be for.
        wished: the words of a request; a scroll of one of those alone or of a feast, or that names a season, needs
            them in it. None where the couplet itself is the request.
    """
    lines, texts, (places, member) = first + second, all_scrolls(), _tables()
    words = read_association(SCROLL_TABLE).of(lines)[places].mean(axis=1)  # [K]
    means = (member * words).sum(axis=1) / member.sum(axis=1)  # [O]
    scores = words + OCCASION_WEIGHT * np.where(member, means[:, None], -np.inf).max(axis=0)  # [K]
    names = list(occasions())
    scores += ASKED_BONUS * member[[names.index(name) for name in names if name in asked]].any(axis=0)
    for occasion in _signs().keys() - {*_FEASTS, *asked}:
        if not _speaks_of(lines if wished is None else wished, occasion):
            scores[member[names.index(occasion)] & (member.sum(axis=0) == 1)] = -np.inf
    if wished is not None:
        scores[_unasked(member, asked, wished)] = -np.inf
    if MOURNING in asked:
        scores[~member[names.index(MOURNING)]] = -np.inf
    absent = [name for name in _ANIMALS.split() if name not in lines]
    absent += [name for name in _NAMED.split() if name not in lines + (wished or "")]
    scores[[any(name in text for name in absent) for text in texts]] = -np.inf
    found: list[Scroll] = []
    for place in np.argsort(-scores, kind="stable").tolist():
        if len(found) == count or scores[place] == -np.inf:
            break
        text = texts[place]
        alike = any(len(set(text) & set(other.text)) >= LIKE for other in found)
        if not alike and text not in first and text not in second:
            found.append(Scroll(text, float(scores[place])))
    return found


def occasions_in(text: str) -> list[str]:
    """Return the feasts that the words of a request ask for without naming them."""
    return [feast for feast in _FEASTS if _speaks_of(text, feast)]


def _speaks_of(text: str, occasion: str) -> bool:
    return any(word in text for word in _signs().get(occasion, ()))


@cache
def _signs() -> dict[str, list[str]]:
    rows = (line.partition(": ") for line in read_rows("signs.txt"))
    return {occasion: words.split() for occasion, _, words in rows}


def _unasked(member: np.ndarray, asked: Sequence[str], wished: str) -> np.ndarray:
    """Return which scrolls are of feasts alone that were not asked for, or name such a season, bool [K]."""
    feasts = np.array([name in _FEASTS and name not in asked for name in occasions()])
    alone = ~member[~feasts].any(axis=0)
    seasons = set(_SEASONS) - set(wished)
    return alone | np.array([bool(seasons & set(scroll)) for scroll in all_scrolls()])


@cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the places of each scroll's two words in the association, [K, 2], and its occasions, bool [O, K]."""
    places = {word: place for place, word in enumerate(read_association(SCROLL_TABLE).words)}
    member = np.array([[scroll in scrolls for scroll in all_scrolls()] for scrolls in occasions().values()])
    return np.array([[places[word] for word in words_of(scroll)] for scroll in all_scrolls()]), member
