"""Drafts: what is fixed of a couplet before the model writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from paddle_dialog.text.tones import Tone, tones
from tasks.couplet.composing.patterns import COMMA, Pattern
from tasks.couplet.composing.request import Wish
from tasks.couplet.composing.themes import LONGEST_WORD, Theme
from tasks.couplet.composing.tone_schemes import TONE_RULES, Scheme, conflicts, schemes
from tasks.couplet.rules.locks import FREE

FREELY = 0.4  # share of the drafts on a usual theme in which its words are not set, only told to the model
_WORDS_TOLD = 2  # of a usual theme, in one draft


@dataclass(frozen=True)
class Draft:
    """What is fixed of one couplet.

    Args:
        pattern: of both lines.
        first: position → character of the 上联, without the commas.
        second: the same of the 下联.
        told: characters of the theme's words, for the model.
        tones: of the 上联.
    """

    pattern: Pattern
    first: Mapping[int, str] = field(default_factory=dict)
    second: Mapping[int, str] = field(default_factory=dict)
    told: str = ""
    tones: Scheme = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Characters of a line, commas included."""
        return self.pattern.positions[-1][-1] + 1

    @property
    def template(self) -> list[str | None]:
        """Each position's character in the 上联, or None."""
        commas = dict.fromkeys(self.pattern.commas, COMMA)
        return [self.first.get(place, commas.get(place)) for place in range(self.size)]

    @property
    def lock(self) -> str:
        """The template of the 下联."""
        commas = dict.fromkeys(self.pattern.commas, COMMA)
        return "".join(self.second.get(p, commas.get(p, FREE)) for p in range(self.size))


def make_drafts(
    wish: Wish, name: str, count: int, random: np.random.Generator, rules: Sequence[str] = TONE_RULES
) -> list[Draft]:
    """Return different drafts of one couplet.

    Args:
        wish: the request.
        name: the one or two characters of it that this couplet has, or none.
        count: how many are tried; equal ones come once.
        random: of the choices.
        rules: of tone, that the 上联 is held to where the fixed characters allow it.
    """
    found: dict[str, Draft] = {}
    patterns, weights = list(wish.patterns), np.array([*wish.patterns.values()], float)
    for number in range(count):
        pattern = patterns[random.choice(len(patterns), p=weights / weights.sum())]
        if number < len(patterns) and count > len(patterns):
            pattern = patterns[number]  # each at least once
        draft = _Drawer(wish, name, pattern, random, rules).draft()
        found.setdefault(repr(draft), draft)
    return list(found.values())


class _Drawer:
    """Draws one draft."""

    def __init__(
        self, wish: Wish, name: str, pattern: Pattern, random: np.random.Generator, rules: Sequence[str]
    ) -> None:
        self._wish, self._pattern, self._random, self._rules = wish, pattern, random, rules
        place = [place for clause in pattern.positions for place in clause][wish.place]
        self._first = {place: name[0]} if name else {}
        self._second = {place: name[1]} if len(name) > 1 else {}

    def draft(self) -> Draft:
        told: list[str] = []
        for theme in self._wish.themes:
            words = self._words(theme)
            own = theme.words == (theme.name,)
            if own or self._random.random() >= FREELY:
                self._set(words[0])
            told += words
        text = ""
        for word in told:
            text += word if len(text) + len(word) <= LONGEST_WORD else ""
        return Draft(self._pattern, self._first, self._second, text, self._tones())

    def _words(self, theme: Theme) -> list[str]:
        """Draw words of a theme that repeat no character of the name, or any if all do."""
        fitting = [word for word in theme.words if not set(word) & set(self._wish.name)] or [*theme.words]
        count = min(len(fitting), int(self._random.integers(1, _WORDS_TOLD + 1)))
        return [fitting[i] for i in self._random.choice(len(fitting), count, replace=False)]

    def _set(self, word: str) -> None:
        """Fix a word in one of the lines where the tones let it stand; leave it where there is no room."""
        sides = [self._first, self._second] if self._random.random() < 0.65 else [self._second, self._first]
        for side in sides:
            places = [places for places in self._rooms(len(word)) if not set(places) & set(side)]
            costs = [self._cost(side, dict(zip(p, word, strict=True))) for p in places]
            best = [p for p, cost in zip(places, costs, strict=True) if cost == min(costs)]
            if best:
                side.update(zip(best[self._random.integers(len(best))], word, strict=True))
                return

    def _rooms(self, size: int) -> Iterator[list[int]]:
        """Iterate over where a word may begin without cutting the rhythm: 2+2+…, or before the last of 2+2+2+1."""
        for clause in self._pattern.positions:
            for start in range(len(clause) - size + 1):
                if start % 2 == 0 or start + size == len(clause):
                    yield clause[start : start + size]

    def _cost(self, side: Mapping[int, str], word: Mapping[int, str]) -> int:
        fixed = {**side, **word}
        if side is self._first:
            return min(conflicts(scheme, fixed) for scheme in schemes(self._pattern, self._rules))
        last = self._pattern.positions[-1][-1]  # of the 下联, which ends level
        return int(last in word and Tone.LEVEL not in tones(word[last]))

    def _tones(self) -> Scheme:
        found = schemes(self._pattern, self._rules)
        costs = [conflicts(scheme, self._first) for scheme in found]
        best = [scheme for scheme, cost in zip(found, costs, strict=True) if cost == min(costs)]
        return best[self._random.integers(len(best))]
