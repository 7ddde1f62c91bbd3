"""Drafts of a couplet: what is fixed before the model writes, and the tones of the 上联.

A draft places the name and words, and has the tones of the 上联. That ends oblique (仄). Backwards from there the
ends of its clauses go level, level, oblique, oblique, … (马蹄韵). Within a clause of four to seven characters the
even places alternate, and its last three characters are not all of one tone (三平尾, 三仄尾). In longer clauses the
rhythm is free, and only the end is bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

import numpy as np

from paddle_dialog.tasks.couplet.composing.request import COMMA, Pattern, Request, Theme, usual_themes
from paddle_dialog.tasks.couplet.config import MAX_THEME_CHARACTERS
from paddle_dialog.tasks.couplet.rules import FREE, clauses, tones_can_oppose
from paddle_dialog.text.characters import Tone, tones

# In this share of the drafts on a usual theme its words are only input of the model, and in this share one is set
# in each line, at the same place; in the others one is set in one line.
FREELY, IN_BOTH = 0.45, 0.3
MAX_DRAFT_WORDS = 2  # of a usual theme
# Without a theme each draft takes a word or two of one of these, so that drafts differ.
DEFAULT_THEMES = (
    "山水 春 夏 秋 冬 梅 兰 竹 菊 荷 松 月 江南 大海 书房 茶 酒 诗 音乐 隐居 友情 思乡 家庭 学习 志向 "
    "农家 书法 绘画 离别 禅"
)
FINAL, ENDS, ALTERNATING = "first_final_tone", "clause_ends", "alternating_tones"
TONE_RULES = (ALTERNATING, ENDS, FINAL)  # in the order in which they are given up
_OTHER = {Tone.LEVEL: Tone.OBLIQUE, Tone.OBLIQUE: Tone.LEVEL}
_BACKWARDS = (Tone.OBLIQUE, Tone.LEVEL, Tone.LEVEL, Tone.OBLIQUE)  # and again
_ALTERNATES = range(4, 8)  # sizes of clauses

T = TypeVar("T")
Scheme = Mapping[int, Tone]  # position in the line → the tone it must have


def has_word(line: str, word: str) -> bool:
    """Return whether a line has a word in the rhythm of 2+2+…, or at the end of a clause.

    So 竹外婆娑 does not have 外婆, which is parts of two words there.
    """
    return any(
        clause[start : start + len(word)] == word
        for clause in clauses(line)
        for start in _starts(len(clause), len(word))
    )


def _starts(clause: int, word: int) -> list[int]:
    """Return where a word may begin without cutting the rhythm of a clause: 2+2+…, or before the last of 2+2+2+1."""
    return [start for start in range(clause - word + 1) if start % 2 == 0 or start + word == clause]


@dataclass(frozen=True)
class Draft:
    """What is fixed of one couplet."""

    pattern: Pattern  # of both lines
    # Position → character of the 上联, without the commas.
    first: Mapping[int, str] = field(default_factory=dict)
    second: Mapping[int, str] = field(default_factory=dict)  # the same of the 下联
    words: str = ""  # characters of the theme's words, for the model
    tones: Scheme = field(default_factory=dict)  # of the 上联

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
    request: Request, name: str, count: int, random: np.random.Generator, rules: Sequence[str] = TONE_RULES
) -> list[Draft]:
    """Return different drafts of one couplet.

    Args:
        name: the characters of the name in this couplet, two at most.
        count: how many are tried; equal ones come once.
        rules: of tone, that the 上联 is held to where the fixed characters allow it.
    """
    found: dict[str, Draft] = {}
    patterns, weights = list(request.patterns), np.array([*request.patterns.values()], float)
    for number in range(count):
        pattern = patterns[random.choice(len(patterns), p=weights / weights.sum())]
        if number < len(patterns) and count > len(patterns):
            pattern = patterns[number]  # each at least once
        draft = _DraftSampler(request, name, pattern, random, rules).draft()
        found.setdefault(repr(draft), draft)
    return list(found.values())


class _DraftSampler:
    """Draws one draft."""

    def __init__(
        self, request: Request, name: str, pattern: Pattern, random: np.random.Generator, rules: Sequence[str]
    ) -> None:
        self._request, self._pattern, self._random, self._rules = request, pattern, random, rules
        place = [place for clause in pattern.positions for place in clause][request.place]
        self._first = {place: name[0]} if name else {}
        self._second = {place: name[1]} if len(name) > 1 else {}

    def draft(self) -> Draft:
        given: list[str] = []
        both = 0.0 if self._first else IN_BOTH  # next to a name there is hardly room
        for theme in sorted(self._request.themes, key=lambda theme: len(theme.words)):
            words = self._words(theme, given)
            chance = self._random.random()
            if len(theme.words) == 1 or chance >= FREELY + both:
                self._set(words[0])
            elif chance >= FREELY:
                self._set_both(words)
            given += words
        if not given:
            names = DEFAULT_THEMES.split()
            given += self._words(usual_themes()[names[self._random.integers(len(names))]], ())
        text = ""
        for word in given:
            text += word if len(text) + len(word) <= MAX_THEME_CHARACTERS else ""
        found = schemes(self._pattern, self._rules)
        scheme = self._cheapest(found, [conflicts(one, self._first) for one in found])
        return Draft(self._pattern, self._first, self._second, text, scheme)

    def _words(self, theme: Theme, given: Sequence[str]) -> list[str]:
        """Draw words of a theme that repeat no character of the name or of other words, or any if all do."""
        taken = {*self._request.name, *"".join(given)}
        fitting = [word for word in theme.words if not taken & set(word)] or [*theme.words]
        words: list[str] = []
        for place in self._random.permutation(len(fitting)):
            if len(words) < MAX_DRAFT_WORDS and not set(fitting[place]) & set("".join(words)):
                words.append(fitting[place])
        return words

    def _set(self, word: str) -> None:
        """Fix a word in one of the lines where the tones allow it, if there is room."""
        if any(word in "".join(side[p] for p in sorted(side)) for side in (self._first, self._second)):
            return
        sides = [self._first, self._second] if self._random.random() < 0.65 else [self._second, self._first]
        for side in sides:
            places = [places for places in self._rooms(len(word)) if not set(places) & set(side)]
            costs = [self._cost(side, dict(zip(p, word, strict=True))) for p in places]
            if places:
                side.update(zip(self._cheapest(places, costs), word, strict=True))
                return

    def _set_both(self, words: Sequence[str]) -> None:
        """Fix a word in each line at the same place, where their tones oppose best, or one alone."""
        size = len(words[0])
        rooms = [places for places in self._rooms(size) if not set(places) & {*self._first, *self._second}]
        orders = [words, words[::-1]] if [len(word) for word in words] == [size, size] else []
        pairs = [(above, below, places) for places in rooms for above, below in orders]
        if not pairs:
            self._set(words[0])
            return
        costs = [self._cost_of_both(*pair) for pair in pairs]
        above, below, places = self._cheapest(pairs, costs)
        self._first.update(zip(places, above, strict=True))
        self._second.update(zip(places, below, strict=True))

    def _cost_of_both(self, above: str, below: str, places: Sequence[int]) -> int:
        costs = self._cost(self._first, dict(zip(places, above, strict=True)))
        costs += self._cost(self._second, dict(zip(places, below, strict=True)))
        return costs + (not tones_can_oppose(above[-1], below[-1]))

    def _rooms(self, size: int) -> Iterator[list[int]]:
        """Iterate over the positions that a word may have."""
        for clause in self._pattern.positions:
            for start in _starts(len(clause), size):
                yield clause[start : start + size]

    def _cost(self, side: Mapping[int, str], word: Mapping[int, str]) -> int:
        fixed = {**side, **word}
        if side is self._first:
            return min(conflicts(scheme, fixed) for scheme in schemes(self._pattern, self._rules))
        last = self._pattern.positions[-1][-1]  # of the 下联, which ends level
        return int(last in word and Tone.LEVEL not in tones(word[last]))

    def _cheapest(self, choices: Sequence[T], costs: Sequence[int]) -> T:
        """Draw one of the choices that cost least."""
        best = [choice for choice, cost in zip(choices, costs, strict=True) if cost == min(costs)]
        return best[self._random.integers(len(best))]


def schemes(pattern: Pattern, rules: Sequence[str] = TONE_RULES) -> list[Scheme]:
    """Return all ways to set the tones of a 上联 under some of `TONE_RULES`."""
    choices = []
    for number, places in enumerate(pattern.positions):
        last = number == len(pattern.clauses) - 1
        end = _end_tone(pattern, number) if (FINAL if last else ENDS) in rules else None
        choices.append(_clause_schemes(places, end, ALTERNATING in rules))
    return [{place: tone for part in parts for place, tone in part.items()} for parts in product(*choices)]


def conflicts(scheme: Scheme, fixed: Mapping[int, str]) -> int:
    """Return how many fixed characters have no reading of the tone their position must have."""
    return sum(place in fixed and tone not in tones(fixed[place]) for place, tone in scheme.items())


def broken_tones(line: str) -> list[str]:
    """Return those of `TONE_RULES` that a 上联 does not keep; readings that fit count."""
    parts = clauses(line)
    if not parts:
        return []
    pattern = Pattern(tuple(map(len, parts)))
    ends = [_end_tone(pattern, number) in tones(part[-1]) for number, part in enumerate(parts)]
    alternate = [
        any(not conflicts(scheme, dict(enumerate(part))) for scheme in _clause_schemes(range(len(part))))
        for part in parts
    ]
    kept = {ALTERNATING: all(alternate), ENDS: all(ends[:-1]), FINAL: ends[-1]}
    return [rule for rule in TONE_RULES if not kept[rule]]


def _end_tone(pattern: Pattern, number: int) -> Tone:
    return _BACKWARDS[(len(pattern.clauses) - 1 - number) % len(_BACKWARDS)]


def _clause_schemes(
    places: Sequence[int], end: Tone | None = None, alternates: bool = True
) -> list[dict[int, Tone]]:
    bound = {} if end is None else {places[-1]: end}
    size = len(places)
    if not alternates or size not in _ALTERNATES:
        return [bound]
    last = size - size % 2 - 1  # index of the last even place
    found = []
    for tone in Tone:
        if last == size - 1 and end not in (None, tone):
            continue
        scheme = {places[i]: tone if (last - i) % 4 == 0 else _OTHER[tone] for i in range(last, 0, -2)}
        if last != size - 1 and tone is end:
            scheme[places[-3]] = _OTHER[tone]
        found.append(scheme | bound)
    return found
