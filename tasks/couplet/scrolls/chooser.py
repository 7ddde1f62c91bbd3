"""Chooses the scrolls that go with a couplet.

A scroll's score is the mean association of its two words with the characters of the couplet, and that of the occasion
it belongs to: couplets on a wedding attract the words of all its scrolls.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from tasks.couplet.association import Association
from tasks.couplet.scrolls.listing import MOURNING, all_scrolls, occasions, words_of

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

TABLE = "association.npz"  # counted by tools/associations.py


@dataclass(frozen=True)
class Scroll:
    """A 横批.

    Args:
        text: four characters.
        score: how well it goes with the couplet, in nats; only the order means something.
    """

    text: str
    score: float

    def as_dict(self) -> dict[str, str | float]:
        """Return it as the server prints it."""
        return {"text": self.text, "score": round(self.score, 4)}


@cache
def scroll_association() -> Association:
    """Return the table of the scrolls' words."""
    return Association.of_bytes((importlib.resources.files(__package__) / TABLE).read_bytes())


class ScrollChooser:
    """Chooses scrolls from the list.

    Args:
        association: of the scrolls' words; the one that ships by default.
    """

    def __init__(self, association: Association | None = None) -> None:
        self._association = scroll_association() if association is None else association

    def choose(self, first: str, second: str, count: int = 5, asked: Sequence[str] = ()) -> list[Scroll]:
        """Return scrolls, best first.

        No two share three characters, and none stands in the couplet word for word. Those of mourning, of ancestral
        halls and of the kitchen god are offered only where they were asked for, or a word tells of them; those of a
        year's animal where the couplet has it.

        Args:
            first: 上联, normalised.
            second: 下联.
            count: how many.
            asked: occasions that the couplet is known to be for.
        """
        words = self._association.of(first + second)[self._words].mean(axis=1)  # [K]
        member = self._member  # [O, K]
        means = (member * words).sum(axis=1) / member.sum(axis=1)  # [O]
        occasion = np.where(member, means[:, None], -np.inf).max(axis=0)  # [K]
        scores = words + OCCASION_WEIGHT * occasion
        names = list(occasions())
        wanted = [number for number, name in enumerate(names) if name in asked]
        scores += ASKED_BONUS * member[wanted].any(axis=0)
        for occasion, signs in _SIGNS.items():
            if occasion not in asked and not any(sign in first + second for sign in signs):
                scores[self._of_one_occasion(occasion)] = -np.inf
        absent = set(_ANIMALS) - set(first + second)
        scores[[bool(absent & set(scroll)) for scroll in all_scrolls()]] = -np.inf
        return self._differing(scores, first, second, count)

    def _differing(self, scores: np.ndarray, first: str, second: str, count: int) -> list[Scroll]:
        found: list[Scroll] = []
        for place in np.argsort(-scores, kind="stable").tolist():
            text = all_scrolls()[place]
            if len(found) == count or scores[place] == -np.inf:
                break
            alike = any(len(set(text) & set(other.text)) >= LIKE for other in found)
            if not alike and text not in first and text not in second:
                found.append(Scroll(text, float(scores[place])))
        return found

    @cached_property
    def _words(self) -> np.ndarray:
        """The places of each scroll's two words in the association, [K, 2]."""
        places = {word: place for place, word in enumerate(self._association.words)}
        return np.array([[places[word] for word in words_of(scroll)] for scroll in all_scrolls()])

    @cached_property
    def _member(self) -> np.ndarray:
        """Which scrolls belong to an occasion, bool [O, K]."""
        return np.array([[scroll in scrolls for scroll in all_scrolls()] for scrolls in occasions().values()])

    def _of_one_occasion(self, name: str) -> np.ndarray:
        """Which scrolls belong to an occasion alone, bool [K]."""
        return self._member[list(occasions()).index(name)] & (self._member.sum(axis=0) == 1)
