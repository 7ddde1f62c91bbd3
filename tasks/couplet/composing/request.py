"""What a whole couplet is asked to be, checked, and drafts of it: what is fixed before the model writes.

A request has the pattern of the clauses, themes, and a name to place. A draft places the name and words, and has
the tones of the 上联. That ends oblique (仄). Backwards from there the ends of its clauses go level, level, oblique,
oblique, … (马蹄韵). Within a clause of four to seven characters the even places alternate, and its last three
characters are not all of one tone (三平尾, 三仄尾). In longer clauses the rhythm is free, and only the end is bound.
"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import TypeVar

import numpy as np

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.rules import FREE, clauses, tones_can_oppose
from paddle_dialog.text.characters import Tone, is_hanzi, normalise_line, simplified_line, tones

SHORTEST, LONGEST = 4, 15  # characters of a line, without punctuation
COMMA = "，"
MAX_WORD = 4  # characters of a theme
MAX_THEMES = 3
MAX_NAME = 8  # characters: four couplets
MAX_SCROLL = 8
MAX_COUPLETS = 20
_CLAUSE = r"\s*(0?\s*[2-9]|1\s*[01])\s*"
PATTERN = rf"^{_CLAUSE}([+＋]{_CLAUSE})*$"
_PATTERN = re.compile(r"[0-9]{1,2}(\+[0-9]{1,2})*")
_BETWEEN_THEMES = re.compile(r"[\s,，、;；/+＋]+")


@dataclass(frozen=True)
class Pattern:
    """The numbers of characters of a line's clauses, which commas separate."""

    clauses: tuple[int, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.clauses))

    @property
    def length(self) -> int:
        """Characters, without punctuation."""
        return sum(self.clauses)

    @property
    def positions(self) -> list[list[int]]:
        """The positions of each clause's characters in the line."""
        starts = [sum(self.clauses[:number]) + number for number in range(len(self.clauses))]
        return [list(range(s, s + size)) for s, size in zip(starts, self.clauses, strict=True)]

    @property
    def commas(self) -> list[int]:
        """The positions of the commas in the line."""
        return [places[-1] + 1 for places in self.positions[:-1]]


@dataclass(frozen=True)
class Theme:
    """A theme as it was requested, and its words, of which a couplet has one at least."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Request:
    """A checked request."""

    themes: tuple[Theme, ...]  # what the couplets speak of; none is anything
    name: str  # characters to be placed: 上 下 上 下 …, a pair to each couplet
    place: int  # of the name's characters in their lines, 0 is the first, punctuation not counted
    patterns: Mapping[Pattern, int]  # allowed ones, with their frequencies
    count: int  # proposals, each of as many couplets as the name needs
    scroll: str | None  # the 横批 of all; None leaves it to the model

    @property
    def parts(self) -> list[str]:
        """The one or two characters of the name in each couplet of a proposal; one couplet without a name."""
        return [self.name[start : start + 2] for start in range(0, len(self.name), 2)] or [""]


def read_request(
    theme: str = "",
    name: str = "",
    place: int = 1,
    length: int | None = None,
    pattern: str | None = None,
    count: int = 5,
    scroll: str | None = None,
) -> Request:
    """Check a request, whose parts are the arguments of `ComposingPredictor.compose`."""
    themes, patterns, written = read_themes(theme), wanted_patterns(length, pattern), simplified_line(name)
    fitting = {p: n for p, n in patterns.items() if 1 <= place <= p.length}
    longest, shape = max(p.length for p in patterns), next(iter(patterns))
    outside = f"place {place} is outside the line; it has {longest} characters"
    size, shown, most = len(written), written[:20], f"up to {MAX_NAME} can be placed, two in each couplet"
    long = f"the name '{shown}' has {size} characters; {most}"
    not_chinese = f"the name '{name[:40]}' has a character that is not Chinese; give one such as 李明"
    _refuse(
        (name != "" and not written, "the name is empty; give Chinese characters, e.g. 李明"),
        (not all(map(is_hanzi, written)), UserError(not_chinese, "name_not_chinese", name=name[:40])),
        (size > MAX_NAME, UserError(long, "name_long", name=shown, length=size, limit=MAX_NAME)),
        (not 1 <= count <= MAX_COUPLETS, f"count is {count}; give 1 to {MAX_COUPLETS}"),
        (not fitting, UserError(outside, "place_outside", place=place, length=longest)),
        (place != 1 and not written, f"place {place} says where a name stands; give a name too"),
    )
    # A clause holds a word next to a character of the name.
    room = max(max(p.clauses) for p in fitting) - bool(written)
    beside = f" beside a character of the name '{written}'" if written else ""
    for one in themes:
        sentence = f"theme: '{one.name}' finds no room{beside} in a line of {shape}; ask for a longer line"
        _refuse((min(map(len, one.words)) > room, UserError(sentence, "theme_no_room", theme=one.name)))
    return Request(themes, written, place - 1, fitting, count, None if scroll is None else _scroll(scroll))


def _refuse(*checks: tuple[bool, str | UserError]) -> None:
    """Raise the error, or the sentence, of the first check that finds something wrong."""
    for wrong, error in checks:
        if wrong:
            raise error if isinstance(error, UserError) else UserError(error)


def _scroll(scroll: str) -> str:
    written = normalise_line(scroll)
    size, is_chinese = len(written), written != "" and all(map(is_hanzi, written))
    other = f"the 横批 '{scroll[:40]}' is not Chinese; give four characters such as 万象更新"
    long = f"the 横批 '{written[:20]}' has {size} characters; four are usual, {MAX_SCROLL} the most"
    _refuse(
        (not is_chinese, UserError(other, "scroll_not_chinese", text=scroll[:40])),
        (size > MAX_SCROLL, UserError(long, "scroll_long", length=size, limit=MAX_SCROLL)),
    )
    return written


@cache
def usual_patterns() -> dict[Pattern, int]:
    """Return the usual patterns with their frequencies, see `patterns.txt`."""
    rows = map(str.split, read_rows("patterns.txt"))
    return {Pattern(tuple(map(int, form.split("+")))): int(count) for form, count in rows}


def wanted_patterns(length: int | None, pattern: str | None) -> dict[Pattern, int]:
    """Return the patterns that a request allows, with their frequencies.

    Args:
        length: characters of a line without punctuation; None is any that fits `pattern`, else 7.
        pattern: as `4+7`; None is any usual one of the length.
    """
    wanted = 7 if length is None else length
    if pattern is None:
        found = {usual: count for usual, count in usual_patterns().items() if usual.length == wanted}
        sentence = f"length {wanted} has no usual pattern; a line has {SHORTEST} to {LONGEST} characters"
        _refuse((not found, sentence))
        return found
    written = "".join(pattern.replace("＋", "+").split())
    if not _PATTERN.fullmatch(written):
        raise UserError(f"pattern '{pattern[:40]}' is none; write the clauses' characters, e.g. 4+7 or 5+5+7")
    chosen = Pattern(tuple(map(int, written.split("+"))))
    size, all_fit = chosen.length, 2 <= min(chosen.clauses) <= max(chosen.clauses) <= 11
    outside = f"pattern {written[:40]} has {size} characters; a line has {SHORTEST} to {LONGEST}"
    other = f"pattern {pattern} has {size} characters and length is {length}; give one of the two"
    _refuse(
        (not SHORTEST <= size <= LONGEST, UserError(outside, "pattern_size", length=size)),
        (not all_fit, f"pattern {written}: a clause has 2 to 11 characters, e.g. 4+7"),
        (length not in (None, size), UserError(other, "pattern_size", length=size)),
    )
    return {chosen: 1}


@cache
def usual_themes() -> dict[str, Theme]:
    """Return the themes of the table by each of their names, see `themes.txt`."""
    themes = {}
    for line in read_rows("themes.txt"):
        names, _, words = line.partition(":")
        themes.update({name: Theme(name, tuple(words.split())) for name in names.split()})
    return themes


def read_rows(name: str) -> list[str]:
    """Return the lines of a file of this folder, without remarks and blank ones."""
    text = (importlib.resources.files(__package__) / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@cache
def main_names() -> dict[tuple[str, ...], str]:
    """Return the main name of each theme of the table by its words, in its order."""
    first: dict[tuple[str, ...], str] = {}
    for name, theme in usual_themes().items():
        first.setdefault(theme.words, name)
    return first


def main_themes() -> list[str]:
    """Return the main name of each theme of the table, in its order."""
    return list(main_names().values())


def read_themes(text: str) -> tuple[Theme, ...]:
    """Return the themes of a text: words with blanks or commas between them; none for an empty text.

    Of a word of more than four characters, those are taken that are names of usual themes, e.g. 家乡 and 江南.
    """
    if not isinstance(text, str):
        raise UserError(
            f"theme is {text!r}; give one text, its words with blanks between them, e.g. 春节 故乡"
        )
    written = filter(None, map(simplified_line, _BETWEEN_THEMES.split(text)))
    names = list(dict.fromkeys(part for whole in written for part in _words_in(whole)))
    for name in names:
        size, shown = len(name), f"'{name[:20]}{'…' if len(name) > 20 else ''}' has {len(name)} characters"
        other = f"theme: '{name[:40]}' has a character that is not Chinese; give words such as 春节 or 围棋"
        long = f"theme: {shown}; give words of up to {MAX_WORD} with blanks between them, e.g. 春节 故乡"
        too_long = UserError(long, "theme_long", theme=name[:20], length=size, limit=MAX_WORD)
        _refuse(
            (not all(map(is_hanzi, name)), UserError(other, "theme_not_chinese", theme=name[:40])),
            (size > MAX_WORD and name not in usual_themes(), too_long),
        )
    if len(names) > MAX_THEMES:
        raise UserError(
            f"theme: {len(names)} words; a couplet has room for {MAX_THEMES} at most",
            "themes_many",
            count=len(names),
            limit=MAX_THEMES,
        )
    return tuple(usual_themes().get(name, Theme(name, (name,))) for name in names)


def _words_in(name: str) -> list[str]:
    """Return the names of usual themes in a long name, the longest first; a short one, or one without, as it is."""
    if len(name) <= MAX_WORD or name in usual_themes():
        return [name]
    found: list[str] = []
    for word in sorted((each for each in usual_themes() if 1 < len(each) <= MAX_WORD), key=len, reverse=True):
        if word in name and len(found) < MAX_THEMES:
            found.append(word)
            name = name.replace(word, " ")
    return found or [name]


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


# In this share of the drafts on a usual theme its words are only input of the model, and in this share one is set
# in each line, at the same place; in the others one is set in one line.
FREELY, IN_BOTH = 0.45, 0.3
MAX_WORDS = 2  # of a usual theme, in one draft
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
            text += word if len(text) + len(word) <= MAX_WORD else ""
        found = schemes(self._pattern, self._rules)
        scheme = self._cheapest(found, [conflicts(one, self._first) for one in found])
        return Draft(self._pattern, self._first, self._second, text, scheme)

    def _words(self, theme: Theme, given: Sequence[str]) -> list[str]:
        """Draw words of a theme that repeat no character of the name or of other words, or any if all do."""
        taken = {*self._request.name, *"".join(given)}
        fitting = [word for word in theme.words if not taken & set(word)] or [*theme.words]
        words: list[str] = []
        for place in self._random.permutation(len(fitting)):
            if len(words) < MAX_WORDS and not set(fitting[place]) & set("".join(words)):
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
