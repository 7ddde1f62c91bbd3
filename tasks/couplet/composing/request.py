"""The request for whole couplets, and its checks; the usual patterns and themes."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.config import MAX_THEME_CHARACTERS
from paddle_dialog.text.characters import is_hanzi, normalise_line, simplified_line

MIN_LENGTH, MAX_LENGTH = 4, 15  # characters of a line, without punctuation
COMMA = "，"
MAX_THEMES = 3
MAX_NAME = 8  # characters: four couplets
MAX_SCROLL = 8
MAX_COUPLETS = 20
_CLAUSE = r"\s*(0?\s*[2-9]|1\s*[01])\s*"
# For JSON schemas: as users may write it, such as 4 ＋ 7.
PATTERN = rf"^{_CLAUSE}([+＋]{_CLAUSE})*$"
_PLAIN_PATTERN = re.compile(r"[0-9]{1,2}(\+[0-9]{1,2})*")  # without blanks
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
    """Check a request; the arguments are those of `ComposingPredictor.compose`."""
    themes, patterns, written = read_themes(theme), wanted_patterns(length, pattern), simplified_line(name)
    fitting = {p: n for p, n in patterns.items() if 1 <= place <= p.length}
    longest, shape = max(p.length for p in patterns), next(iter(patterns))
    size, shown = len(written), written[:20]
    if name != "" and not written:
        raise UserError("the name is empty; give Chinese characters, e.g. 李明")
    if not all(map(is_hanzi, written)):
        said = f"the name '{name[:40]}' has a character that is not Chinese; give one such as 李明"
        raise UserError(said, "name_not_chinese", name=name[:40])
    if size > MAX_NAME:
        most = f"up to {MAX_NAME} can be placed, two in each couplet"
        said = f"the name '{shown}' has {size} characters; {most}"
        raise UserError(said, "name_long", name=shown, length=size, limit=MAX_NAME)
    if not 1 <= count <= MAX_COUPLETS:
        raise UserError(f"count is {count}; give 1 to {MAX_COUPLETS}")
    if not fitting:
        said = f"place {place} is outside the line; it has {longest} characters"
        raise UserError(said, "place_outside", place=place, length=longest)
    if place != 1 and not written:
        raise UserError(f"place {place} says where a name stands; give a name too")
    # A clause holds a word next to a character of the name.
    room = max(max(p.clauses) for p in fitting) - bool(written)
    beside = f" beside a character of the name '{written}'" if written else ""
    for one in themes:
        if min(map(len, one.words)) > room:
            said = f"theme: '{one.name}' finds no room{beside} in a line of {shape}; ask for a longer line"
            raise UserError(said, "theme_no_room", theme=one.name)
    return Request(themes, written, place - 1, fitting, count, None if scroll is None else _scroll(scroll))


def _scroll(scroll: str) -> str:
    written = normalise_line(scroll)
    size = len(written)
    if written == "" or not all(map(is_hanzi, written)):
        said = f"the 横批 '{scroll[:40]}' is not Chinese; give four characters such as 万象更新"
        raise UserError(said, "scroll_not_chinese", text=scroll[:40])
    if size > MAX_SCROLL:
        said = f"the 横批 '{written[:20]}' has {size} characters; four are usual, {MAX_SCROLL} the most"
        raise UserError(said, "scroll_long", length=size, limit=MAX_SCROLL)
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
        if not found:
            said = f"length {wanted} has no usual pattern; a line has {MIN_LENGTH} to {MAX_LENGTH} characters"
            raise UserError(said)
        return found
    written = "".join(pattern.replace("＋", "+").split())
    if not _PLAIN_PATTERN.fullmatch(written):
        raise UserError(f"pattern '{pattern[:40]}' is none; write the clauses' characters, e.g. 4+7 or 5+5+7")
    chosen = Pattern(tuple(map(int, written.split("+"))))
    size = chosen.length
    if not MIN_LENGTH <= size <= MAX_LENGTH:
        said = f"pattern {written[:40]} has {size} characters; a line has {MIN_LENGTH} to {MAX_LENGTH}"
        raise UserError(said, "pattern_size", length=size)
    if min(chosen.clauses) < 2 or max(chosen.clauses) > 11:
        raise UserError(f"pattern {written}: a clause has 2 to 11 characters, e.g. 4+7")
    if length not in (None, size):
        said = f"pattern {pattern} has {size} characters and length is {length}; give one of the two"
        raise UserError(said, "pattern_size", length=size)
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
        size, limit, start = len(name), MAX_THEME_CHARACTERS, name[:40]
        if not all(map(is_hanzi, name)):
            said = f"theme: '{start}' has a character that is not Chinese; give words such as 春节 or 围棋"
            raise UserError(said, "theme_not_chinese", theme=start)
        if size > limit and name not in usual_themes():
            shown = f"'{name[:20]}{'…' if size > 20 else ''}' has {size} characters"
            said = f"theme: {shown}; give words of up to {limit} with blanks between them, e.g. 春节 故乡"
            raise UserError(said, "theme_long", theme=name[:20], length=size, limit=limit)
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
    if len(name) <= MAX_THEME_CHARACTERS or name in usual_themes():
        return [name]
    found: list[str] = []
    words = [each for each in usual_themes() if 1 < len(each) <= MAX_THEME_CHARACTERS]
    for word in sorted(words, key=len, reverse=True):
        if word in name and len(found) < MAX_THEMES:
            found.append(word)
            name = name.replace(word, " ")
    return found or [name]
