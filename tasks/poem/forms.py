"""The forms of regulated verse: lines, patterns of tones, rhymes, and how well a poem keeps them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.tones import Tone, tones
from tasks.poem.rhymes import common_rhymes

FormName = Literal["五绝", "七绝", "五律", "七律"]
_BETWEEN_LINES = re.compile("[，。！？；：、]")

# The four kinds of line (Wang Li 1958, 汉语诗律学): level 平, oblique 仄, either 中. Large letters end oblique, small
# ones level; within a couplet the tones are opposed (对), and from one couplet to the next they stick together (粘).
_FIVE = {"A": "中仄平平仄", "b": "平平仄仄平", "B": "中平平仄仄", "a": "中仄仄平平"}
_BEFORE_SEVEN = {"A": "中平", "b": "中仄", "B": "中仄", "a": "中平"}
_FIRST_FOUR, _NEXT_FOUR = ("AbBa", "abBa", "BaAb", "baAb"), ("AbBa", "AbBa", "BaAb", "BaAb")


@dataclass(frozen=True)
class Form:
    """A form of verse.

    Attributes:
        name: e.g. 七绝.
        lines: 4 or 8.
        length: characters of a line, 5 or 7.
    """

    name: FormName
    lines: int
    length: int

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
        """Return the punctuation mark that stands at a position, or None where a hanzi stands."""
        line, column = divmod(place, self.length + 1)
        return None if column < self.length else "，。"[line % 2]


FORMS: dict[FormName, Form] = {
    form.name: form
    for form in (Form("五绝", 4, 5), Form("七绝", 4, 7), Form("五律", 8, 5), Form("七律", 8, 7))
}


@dataclass(frozen=True)
class FormReport:
    """The rules of a form that a poem keeps.

    Args:
        name: of the form.
        lengths: it has its lines, each of its length and of hanzi alone.
        tones: its characters can be read in one of the patterns of tones.
        rhyme: its even lines end in one rhyme, on different characters.
    """

    name: str
    lengths: bool
    tones: bool
    rhyme: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the report as it is printed."""
        return asdict(self)


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
