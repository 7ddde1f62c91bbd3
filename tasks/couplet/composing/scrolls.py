"""横批: scrolls of four characters over a couplet, chosen from a list of traditional ones.

The score of one is the mean association of its two words with the characters of the couplet, and that of the
occasion it belongs to: couplets on a wedding attract the words of all its scrolls. The tables of associations were
counted over a training corpus (`tools/weights/couplet/associations.py`); they have no line of it.
"""

from __future__ import annotations

import importlib.resources
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from paddle_dialog.tasks.couplet.composing.request import read_rows
from paddle_dialog.text.characters import is_hanzi

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
