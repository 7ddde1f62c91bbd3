"""横批, the scroll of four characters over a couplet, chosen from a list of traditional ones.

A scroll's score is the mean association of its two words with the characters of the couplet, and that of the occasion
it belongs to: couplets on a wedding attract the words of all its scrolls. The tables of associations, of the words of
scrolls and of themes, were counted over a training corpus (`tools/weights/couplet/associations.py`); they have no
line of it.
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
_ANIMALS = "鼠牛兔蛇羊猴鸡狗犬猪"  # of the years; a scroll has one only where the couplet has it
# Occasions whose own scrolls need a sign of them in the couplet, if they were not asked for.
_SIGNS = {
    MOURNING: ("音容", "驾鹤", "九泉", "遗爱", "哀", "悼", "泪", "魂", "哭", "挽"),
    "祠堂": ("祖", "祠", "宗", "先"),
    "灶神": ("灶", "厨"),
}
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


def choose_scrolls(first: str, second: str, count: int = 5, asked: Sequence[str] = ()) -> list[Scroll]:
    """Choose scrolls for a couplet, best first.

    No two share three characters, and none is part of the couplet. Those of mourning, of ancestral halls and of the
    kitchen god need to be asked for or a word of them in the couplet; those of a year's animal need that animal.

    Args:
        asked: occasions that the couplet is known to be for.
    """
    lines, texts, (places, member) = first + second, all_scrolls(), _tables()
    words = read_association(SCROLL_TABLE).of(lines)[places].mean(axis=1)  # [K]
    means = (member * words).sum(axis=1) / member.sum(axis=1)  # [O]
    scores = words + OCCASION_WEIGHT * np.where(member, means[:, None], -np.inf).max(axis=0)  # [K]
    names = list(occasions())
    scores += ASKED_BONUS * member[[names.index(name) for name in names if name in asked]].any(axis=0)
    for occasion, signs in _SIGNS.items():
        if occasion not in asked and not any(sign in lines for sign in signs):
            scores[member[names.index(occasion)] & (member.sum(axis=0) == 1)] = -np.inf
    absent = set(_ANIMALS) - set(lines)
    scores[[bool(absent & set(text)) for text in texts]] = -np.inf
    found: list[Scroll] = []
    for place in np.argsort(-scores, kind="stable").tolist():
        if len(found) == count or scores[place] == -np.inf:
            break
        text = texts[place]
        alike = any(len(set(text) & set(other.text)) >= LIKE for other in found)
        if not alike and text not in first and text not in second:
            found.append(Scroll(text, float(scores[place])))
    return found


@cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the places of each scroll's two words in the association, [K, 2], and its occasions, bool [O, K]."""
    places = {word: place for place, word in enumerate(read_association(SCROLL_TABLE).words)}
    member = np.array([[scroll in scrolls for scroll in all_scrolls()] for scrolls in occasions().values()])
    return np.array([[places[word] for word in words_of(scroll)] for scroll in all_scrolls()]), member
