"""What a whole couplet is asked to be, checked: the pattern of its clauses, its themes, and a name to place in it."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.rules import clauses
from paddle_dialog.text.characters import is_hanzi, normalise_line, simplified_line

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
    size = len(word)
    for clause in clauses(line):
        for start in range(len(clause) - size + 1):
            if clause[start : start + size] == word and (start % 2 == 0 or start + size == len(clause)):
                return True
    return False
