"""What a whole couplet is asked to be, checked: the pattern of its clauses, its themes, and a name to place in it."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.form import clauses
from paddle_dialog.text.characters import is_hanzi, normalise_line
from paddle_dialog.text.simplified import simplified_line

SHORTEST, LONGEST = 4, 15  # characters of a line, without punctuation
COMMA = "，"
LONGEST_WORD = 4  # characters of a theme
MOST_THEMES = 3
LONGEST_NAME = 8  # characters: four couplets
LONGEST_SCROLL = 8
MOST_COUPLETS = 20
_PATTERN = re.compile(r"[0-9]{1,2}(\+[0-9]{1,2})*")
_BETWEEN_THEMES = re.compile(r"[\s,，、;；/+＋]+")


@dataclass(frozen=True)
class Pattern:
    """The characters of each clause of a line; commas stand between them.

    Args:
        clauses: numbers of characters.
    """

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
    """What a couplet is to speak of.

    Args:
        name: as it was asked for.
        words: of which a couplet has one at least; the name itself where the theme is not in the table.
    """

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Request:
    """A checked request.

    Args:
        themes: what the couplets speak of; none is anything.
        name: characters to be placed: 上 下 上 下 …, a pair to each couplet.
        place: of the name's characters in their lines, 0 is the first, punctuation not counted.
        patterns: allowed ones, with their frequencies.
        count: proposals, each of as many couplets as the name needs.
        scroll: the 横批 of all; None leaves it to the model.
    """

    themes: tuple[Theme, ...]
    name: str
    place: int
    patterns: Mapping[Pattern, int]
    count: int
    scroll: str | None

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
    """Check a request, whose parts are the arguments of `ComposingPredictor.compose`.

    Raises:
        UserError: something cannot be met, or two things contradict each other.
    """
    themes, patterns, characters = read_themes(theme), wanted_patterns(length, pattern), _name(name)
    if not 1 <= count <= MOST_COUPLETS:
        raise UserError(f"count is {count}; give 1 to {MOST_COUPLETS}")
    fitting = {p: n for p, n in patterns.items() if 1 <= place <= p.length}
    if not fitting:
        raise UserError(
            f"place {place} is outside the line; it has {max(p.length for p in patterns)} characters"
        )
    if place != 1 and not characters:
        raise UserError(f"place {place} says where a name stands; give a name too")
    _check_room(themes, characters, fitting)
    return Request(themes, characters, place - 1, fitting, count, None if scroll is None else _scroll(scroll))


def _name(name: str) -> str:
    written = simplified_line(name)
    if name and not written:
        raise UserError("the name is empty; give Chinese characters, e.g. 李明")
    if not all(map(is_hanzi, written)):
        raise UserError(
            f"the name '{name[:40]}' has a character that is not Chinese; give one such as 李明",
            "name_not_chinese",
            name=name[:40],
        )
    if len(written) > LONGEST_NAME:
        raise UserError(
            f"the name '{written[:20]}' has {len(written)} characters; up to {LONGEST_NAME} can be placed, "
            "two in each couplet",
            "name_long",
            name=written[:20],
            length=len(written),
            limit=LONGEST_NAME,
        )
    return written


def _scroll(scroll: str) -> str:
    written = normalise_line(scroll)
    if not written or not all(map(is_hanzi, written)):
        raise UserError(f"the 横批 '{scroll[:40]}' is not Chinese; give four characters such as 万象更新")
    if len(written) > LONGEST_SCROLL:
        raise UserError(
            f"the 横批 '{written[:20]}' has {len(written)} characters; four are usual, {LONGEST_SCROLL} the most"
        )
    return written


def _check_room(themes: tuple[Theme, ...], name: str, patterns: Mapping[Pattern, int]) -> None:
    """Refuse a word that no clause can hold beside a character of the name."""
    widest = max(max(pattern.clauses) for pattern in patterns) - bool(name)
    for theme in themes:
        if min(map(len, theme.words)) > widest:
            shape = next(iter(patterns))
            beside = f" beside a character of the name '{name}'" if name else ""
            raise UserError(
                f"theme: '{theme.name}' finds no room{beside} in a line of {shape}; ask for a longer line",
                "theme_no_room",
                theme=theme.name,
            )


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

    Raises:
        UserError: no line can be of this length or pattern, or the two contradict each other.
    """
    if pattern is not None:
        chosen = _read_pattern(pattern)
        if length is not None and length != chosen.length:
            raise UserError(
                f"pattern {pattern} has {chosen.length} characters and length is {length}; give one of the two"
            )
        return {chosen: 1}
    wanted = 7 if length is None else length
    found = {usual: count for usual, count in usual_patterns().items() if usual.length == wanted}
    if not found:
        raise UserError(
            f"length {wanted} has no usual pattern; a line has {SHORTEST} to {LONGEST} characters"
        )
    return found


def _read_pattern(pattern: str) -> Pattern:
    written = pattern.replace("＋", "+").replace(" ", "")
    if not _PATTERN.fullmatch(written):
        raise UserError(f"pattern '{pattern[:40]}' is none; write the clauses' characters, e.g. 4+7 or 5+5+7")
    chosen = Pattern(tuple(map(int, written.split("+"))))
    if not SHORTEST <= chosen.length <= LONGEST:
        raise UserError(
            f"pattern {written[:40]} has {chosen.length} characters; a line has {SHORTEST} to {LONGEST}"
        )
    if min(chosen.clauses) < 2 or max(chosen.clauses) > 11:
        raise UserError(f"pattern {written}: a clause has 2 to 11 characters, e.g. 4+7")
    return chosen


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

    Raises:
        UserError: a word is too long or not Chinese, or there are too many.
    """
    if not isinstance(text, str):
        raise UserError(
            f"theme is {text!r}; give one text, its words with blanks between them, e.g. 春节 故乡"
        )
    names = list(filter(None, map(simplified_line, _BETWEEN_THEMES.split(text))))
    themes = []
    for name in dict.fromkeys(names):
        known = usual_themes().get(name)
        if known is None:
            _check_word(name)
        themes.append(known or Theme(name, (name,)))
    if len(themes) > MOST_THEMES:
        raise UserError(
            f"theme: {len(themes)} words; a couplet has room for {MOST_THEMES} at most",
            "themes_many",
            count=len(themes),
            limit=MOST_THEMES,
        )
    return tuple(themes)


def has_word(line: str, word: str) -> bool:
    """Return whether a word stands in a line in the rhythm of 2+2+…, or ends a clause.

    So 外婆 does not stand in 竹外婆娑, where it is parts of two words.
    """
    size = len(word)
    for clause in clauses(line):
        for start in range(len(clause) - size + 1):
            if clause[start : start + size] == word and (start % 2 == 0 or start + size == len(clause)):
                return True
    return False


def _check_word(word: str) -> None:
    if not all(map(is_hanzi, word)):
        raise UserError(
            f"theme: '{word[:40]}' has a character that is not Chinese; give words such as 春节 or 围棋",
            "theme_not_chinese",
            theme=word[:40],
        )
    if len(word) > LONGEST_WORD:
        raise UserError(
            f"theme: '{word[:20]}{'…' if len(word) > 20 else ''}' has {len(word)} characters; give words of up to "
            f"{LONGEST_WORD} with blanks between them, e.g. 春节 故乡",
            "theme_long",
            theme=word[:20],
            length=len(word),
            limit=LONGEST_WORD,
        )
