"""Themes of couplets: a table of usual ones with their words, and any other as a word itself."""

from __future__ import annotations

import importlib.resources
import re
from dataclasses import dataclass
from functools import cache

from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.simplified import simplified_line
from tasks.couplet.association import Association
from tasks.couplet.form import clauses

TABLE = "themes.npz"  # counted by tools/associations.py
LONGEST_WORD = 4  # characters
MOST_THEMES = 3
_BETWEEN = re.compile(r"[\s,，、;；/+＋]+")


@dataclass(frozen=True)
class Theme:
    """What a couplet is to speak of.

    Args:
        name: as it was asked for.
        words: of which a couplet has one at least; the name itself where the theme is not in the table.
    """

    name: str
    words: tuple[str, ...]


@cache
def usual_themes() -> dict[str, Theme]:
    """Return the themes of the table by each of their names, see `themes.txt`."""
    text = (importlib.resources.files(__package__) / "themes.txt").read_text(encoding="utf-8")
    themes = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            names, _, words = line.partition(":")
            themes.update({name: Theme(name, tuple(words.split())) for name in names.split()})
    return themes


@cache
def theme_association() -> Association:
    """Return the table of the themes by their main names."""
    return Association.of_bytes((importlib.resources.files(__package__) / TABLE).read_bytes())


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
    names = list(filter(None, map(simplified_line, _BETWEEN.split(text))))
    themes = []
    for name in dict.fromkeys(names):
        known = usual_themes().get(name)
        if known is None:
            _check_word(name)
        themes.append(known or Theme(name, (name,)))
    if len(themes) > MOST_THEMES:
        raise UserError(f"theme: {len(themes)} words; a couplet has room for {MOST_THEMES} at most")
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
            f"theme: '{word[:40]}' has a character that is not Chinese; give words such as 春节 or 围棋"
        )
    if len(word) > LONGEST_WORD:
        raise UserError(
            f"theme: '{word[:20]}{'…' if len(word) > 20 else ''}' has {len(word)} characters; give words of up to "
            f"{LONGEST_WORD} with blanks between them, e.g. 春节 故乡"
        )
