"""The forms of regulated verse: their lines, tones and rhymes, how well a poem keeps them, and a search held to one.

Given characters are kept whatever the rules say. Where no pattern of tones has room for them, `tones` is relaxed:
only the ends of the even lines keep theirs. Where those among them that end even lines have no rhyme in common or
are there twice, `rhyme` is relaxed.

The table of rhymes was made from verse: python tools/weights/poem/rhyme_table.py poems.txt.xz
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from paddle_dialog.decoding.processors import FORBIDDEN, Prefixes
from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import Tone, can_be_level, can_be_oblique, is_hanzi, tones
from paddle_dialog.text.vocabulary import Vocabulary

RHYMES = Path(__file__).with_name("rhymes.txt")
NAMES = "东冬江支微鱼虞齐佳灰真文元寒删先萧肴豪歌麻阳庚青蒸尤侵覃盐咸"  # of the thirty level rhymes (平水韵)
FormName = Literal["五绝", "七绝", "五律", "七律"]
FormChoice = Literal["五绝", "七绝", "五律", "七律", "any"]
MIN_LINES = 4  # of a poem without a form
_BETWEEN_LINES = re.compile("[，。！？；：、]")

# The four kinds of line (Wang Li 1958, 汉语诗律学): level 平, oblique 仄, either 中. Large letters end oblique, small
# ones level; within a couplet the tones are opposed (对), and from one couplet to the next they stick together (粘).
_FIVE = {"A": "中仄平平仄", "b": "平平仄仄平", "B": "中平平仄仄", "a": "中仄仄平平"}
_BEFORE_SEVEN = {"A": "中平", "b": "中仄", "B": "中仄", "a": "中平"}
_FIRST_FOUR, _NEXT_FOUR = ("AbBa", "abBa", "BaAb", "baAb"), ("AbBa", "AbBa", "BaAb", "BaAb")
ANY, LEVEL, OBLIQUE = range(3)
_NEEDS = {"中": ANY, "平": LEVEL, "仄": OBLIQUE}


@dataclass(frozen=True)
class Form:
    """A form of verse."""

    name: FormName  # e.g. 七绝
    lines: int  # 4 or 8
    length: int  # characters of a line, 5 or 7

    @property
    def patterns(self) -> list[str]:
        """The four patterns of tones, all lines in one."""
        kinds = [f + (n if self.lines == 8 else "") for f, n in zip(_FIRST_FOUR, _NEXT_FOUR, strict=True)]
        return ["".join(self._line(kind) for kind in poem) for poem in kinds]

    def _line(self, kind: str) -> str:
        return (_BEFORE_SEVEN[kind] if self.length == 7 else "") + _FIVE[kind]

    @property
    def size(self) -> int:
        """Characters of a poem, with the mark after each line."""
        return self.lines * (self.length + 1)

    @property
    def rhyming_places(self) -> list[int]:
        """The positions of the even lines' last characters."""
        step = 2 * (self.length + 1)
        return list(range(step - 2, self.size, step))

    def mark(self, place: int) -> str | None:
        """Return the punctuation mark at a position, or None for a hanzi."""
        line, column = divmod(place, self.length + 1)
        return None if column < self.length else "，。"[line % 2]


FORMS: dict[FormName, Form] = {
    form.name: form
    for form in (Form("五绝", 4, 5), Form("七绝", 4, 7), Form("五律", 8, 5), Form("七律", 8, 7))
}


# What is dropped where a form leaves nothing to write, in the order in which it is tried.
RELAXATIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("once",),
    ("once", "rhyme"),
    ("once", "tones"),
    ("once", "tones", "rhyme"),
    ("once", "twice", "tones", "rhyme"),
)


@dataclass(frozen=True)
class FormReport:
    """The rules of a form that a poem keeps."""

    name: str
    lengths: bool  # it has its lines, each of its length and of hanzi alone
    tones: bool  # its characters can be read in one of the patterns of tones
    rhyme: bool  # its even lines end in one rhyme, on different characters


def split_lines(body: str) -> list[str]:
    """Return the lines of a poem without their punctuation."""
    return [line for line in _BETWEEN_LINES.split(body) if line]


def form_of(body: str) -> Form | None:
    """Return the form whose lines a poem has; None where it has another number or length of lines."""
    lines = split_lines(body)
    return next((form for form in FORMS.values() if _has_lengths(lines, form)), None)


def report_form(body: str, form: Form) -> FormReport:
    """Report how well a poem keeps a form; with other lengths it keeps nothing."""
    lines = split_lines(body)
    if not _has_lengths(lines, form):
        return FormReport(form.name, False, False, False)
    fits = any(_can_be_read("".join(lines), pattern) for pattern in form.patterns)
    return FormReport(form.name, True, fits, _rhymes(lines))


def _has_lengths(lines: Sequence[str], form: Form) -> bool:
    return len(lines) == form.lines and all(
        len(line) == form.length and all(map(is_hanzi, line)) for line in lines
    )


def _can_be_read(characters: str, pattern: str) -> bool:
    pairs = zip(characters, pattern, strict=True)
    return all(wanted == "中" or Tone(wanted) in tones(char) for char, wanted in pairs)


def _rhymes(lines: Sequence[str]) -> bool:
    endings = "".join(line[-1] for line in lines[1::2])
    return len(set(endings)) == len(endings) and bool(common_rhymes(endings))


def rhymes(char: str) -> frozenset[str]:
    """Return the rhymes of a character by their names, e.g. 东; none where it has no level reading or is too rare."""
    return _rhyme_table().get(char, frozenset())


def common_rhymes(characters: str) -> frozenset[str]:
    """Return the rhymes that all characters share; all thirty for no character."""
    return frozenset(NAMES).intersection(*map(rhymes, characters))


@cache
def _rhyme_table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in RHYMES.read_text(encoding="utf-8").splitlines():
        name, _, members = line.partition(" ")
        for char in members:
            found.setdefault(char, set()).add(name)
    return {char: frozenset(names) for char, names in found.items()}


class TonesAndRhymes:
    """Properties of the V tokens of a vocabulary that the forms need.

    Attributes:
        serves: those that serve where `ANY`, `LEVEL` or `OBLIQUE` is needed, bool [3, V].
        rhymes: which of the thirty rhymes each has, bool [V, 30].
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        tokens = vocabulary.tokens
        hanzi = np.array([len(token) == 1 and is_hanzi(token) for token in tokens])
        level, oblique = (
            np.array([len(token) == 1 and can_be(token) for token in tokens])
            for can_be in (can_be_level, can_be_oblique)
        )
        self.vocabulary = vocabulary
        self.serves = np.stack([hanzi, hanzi & level, hanzi & oblique])
        self.rhymes = np.array([[name in rhymes(token) for name in NAMES] for token in tokens])


@dataclass(frozen=True)
class FormPlan:
    """The plan of one poem."""

    form: Form
    given: Mapping[int, str]  # position in the poem → character
    # For each pattern of tones what each position of the P of a poem needs, int [patterns, P]; given characters
    # need nothing.
    needs: np.ndarray
    relaxed: tuple[str, ...]  # rules that the given characters cannot keep, and those that were dropped
    # Those that the given ends leave, bool [30]; None where the ends need not rhyme.
    rhymes: np.ndarray | None
    most: int  # times that a character is used, except those given


def make_plan(
    form: Form, given: Mapping[int, str], rhyme: bool = True, dropped: Sequence[str] = ()
) -> FormPlan:
    """Plan a poem that has given characters.

    Args:
        given: position → character.
        rhyme: hold it to a rhyme.
        dropped: one of `RELAXATIONS`.
    """
    tones, rhyme = "tones" not in dropped, rhyme and "rhyme" not in dropped
    most = form.size if "twice" in dropped else 2 if "once" in dropped else 1
    needs = np.full((4, form.size), ANY)
    hanzi = [place for place in range(form.size) if form.mark(place) is None]
    for row, pattern in zip(needs, form.patterns, strict=True):
        row[hanzi] = [_NEEDS[wanted] for wanted in pattern]
    can_be = (is_hanzi, can_be_level, can_be_oblique)
    fits = [all(can_be[row[place]](char) for place, char in given.items()) for row in needs]
    ends = "".join(given[place] for place in form.rhyming_places if place in given)
    left = common_rhymes(ends) if len(set(ends)) == len(ends) else frozenset()
    relaxed = ["tones"] * (tones and not any(fits)) + ["rhyme"] * (rhyme and not left)
    if tones and any(fits):
        needs = needs[fits]
    else:
        needs = np.full((1, form.size), ANY)
        if rhyme and left:
            needs[:, form.rhyming_places] = LEVEL
    needs[:, list(given)] = ANY
    kept = np.array([name in left for name in NAMES])
    return FormPlan(form, given, needs, (*relaxed, *dropped), kept if rhyme and left else None, most)


def place_beginning(form: Form, text: str) -> dict[int, str]:
    """Place the hanzi of a beginning in a form; its punctuation is left out."""
    characters = [char for char in text if is_hanzi(char)]
    if len(characters) > form.lines * form.length:
        raise UserError(
            f"the beginning has {len(characters)} hanzi, and a {form.name} has {form.lines * form.length}; "
            "shorten it",
            "beginning_long",
            length=len(characters),
            limit=form.lines * form.length,
        )
    return {place + place // form.length: char for place, char in enumerate(characters)}


def form_of_acrostic(text: str, wanted: Form | None) -> Form:
    """Return the form of four or eight lines that has one for each character of an acrostic.

    Args:
        text: the first characters of the lines; lines after them begin freely.
        wanted: the form that was asked for, whose length of lines is kept; 七 by default.
    """
    length = 7 if wanted is None else wanted.length
    forms = {form.lines: form for form in FORMS.values() if form.length == length}
    if not 1 <= len(text) <= 8 or not all(map(is_hanzi, text)):
        raise UserError(
            f"'{text[:20]}' cannot begin the lines of a poem; give 1 to 8 hanzi, one for each line",
            "acrostic_lines",
        )
    return forms[4 if len(text) <= 4 else 8]


def place_acrostic(form: Form, text: str) -> dict[int, str]:
    """Place the first characters of the lines, as many as the form has, in a form."""
    return {line * (form.length + 1): char for line, char in enumerate(text)}


class FreeVerse:
    """Holds poems without a form to four lines at least, and to each character twice at most.

    Args:
        beginnings: the number of given characters of each input, which may be as they like.
    """

    def __init__(self, beginnings: Sequence[int], table: TonesAndRhymes) -> None:
        vocabulary = table.vocabulary
        self._beginnings, self._hanzi = beginnings, table.serves[ANY]
        self._ends = [vocabulary.id(mark) for mark in "，。！？；" if mark in vocabulary]

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        for row, number in enumerate(prefixes.inputs.tolist()):
            tokens = prefixes.tokens[row]
            if len(tokens) >= self._beginnings[number]:
                scores[row, _used(tokens, 2, scores.shape[1]) & self._hanzi] = FORBIDDEN
                if np.isin(tokens, self._ends).sum() < MIN_LINES and len(tokens) < prefixes.limits[row]:
                    scores[row, Vocabulary.eos_id] = FORBIDDEN


def _used(tokens: np.ndarray, times: int, size: int) -> np.ndarray:
    """Return which tokens of a vocabulary stand so often among `tokens` [t], bool [V]."""
    return np.bincount(tokens, minlength=size)[:size] >= times


class FormConstraint:
    """Holds every row to the plan of its input.

    A character is allowed where some pattern of tones that the row still keeps has room for it; once,
    unless it was given. The first line may rhyme too: it then ends level. There, a character with readings of
    both tones would leave open whether it does.

    Args:
        plans: one for each input.
    """

    def __init__(self, plans: Sequence[FormPlan], table: TonesAndRhymes) -> None:
        self._plans, self._table = plans, table

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        for row, number in enumerate(prefixes.inputs.tolist()):
            plan, tokens = self._plans[number], prefixes.tokens[row]
            if len(tokens) == plan.form.size:
                allowed = np.zeros(scores.shape[1], dtype=bool)
                allowed[Vocabulary.eos_id] = True
            else:
                allowed = self._allowed(plan, tokens)
            scores[row, ~allowed] = FORBIDDEN

    def _allowed(self, plan: FormPlan, tokens: np.ndarray) -> np.ndarray:
        """Return which tokens may follow `tokens` [t], bool [V]."""
        place, form, serves = len(tokens), plan.form, self._table.serves
        fixed = plan.given.get(place, form.mark(place))
        if fixed is not None:
            allowed = np.zeros(serves.shape[1], dtype=bool)
            allowed[self._table.vocabulary.id(fixed)] = True
            return allowed
        bound = np.array([form.mark(p) is not None or p in plan.given for p in range(place)], dtype=bool)
        alive = (bound | serves[plan.needs[:, :place], tokens]).all(axis=1)  # [patterns]
        allowed = serves[plan.needs[alive, place]].any(axis=0)  # [V]
        allowed[_used(tokens, plan.most, serves.shape[1])] = False
        if plan.rhymes is None:
            return allowed
        if place == form.length - 1:
            rhyming = (self._table.rhymes & plan.rhymes).any(axis=1)
            allowed &= ~(serves[LEVEL] & serves[OBLIQUE]) & (~serves[LEVEL] | rhyming)
        elif place in form.rhyming_places:
            allowed &= self._rhyming(plan, plan.rhymes, tokens)
        return allowed

    def _rhyming(self, plan: FormPlan, rhymes: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Return which tokens rhyme with the line ends before and differ from them, bool [V]."""
        first, serves = plan.form.length - 1, self._table.serves
        places = [place for place in plan.form.rhyming_places if place < len(tokens)]
        if serves[LEVEL, tokens[first]] and not serves[OBLIQUE, tokens[first]]:
            places.append(first)
        free = tokens[[place for place in places if place not in plan.given]]
        left = rhymes & self._table.rhymes[free].all(axis=0)  # [30]
        allowed = (self._table.rhymes & left).any(axis=1)
        given = [
            self._table.vocabulary.id(plan.given[p]) for p in plan.form.rhyming_places if p in plan.given
        ]
        allowed[[*tokens[places], *given]] = False
        return allowed
