"""Finding phrases in what people write, however they spell them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.simplified import simplified

GAP = "…"
_APOSTROPHES = frozenset("'’‘´`ʼ＇")
_SEPARATORS = re.compile("[ ,]+")
# A normalised text has one blank, or one comma where there was any sign, between its words.
_START, _END = "(?<![a-z0-9])", "(?![a-z0-9])"
_GAP = rf"[ ]?(?:(?:{_START}[a-z0-9]+{_END}|[\u3400-\u9fff])[ ]?){{0,3}}?"


class Phrases:
    """Phrases that are looked for in texts, and idioms that are not meant.

    Args:
        phrases: each is found whatever its case and width, with simplified or traditional characters, and with blanks
            or signs inside; a Latin one as whole words.
        exceptions: a phrase inside one of these does not count; no signs are allowed inside them.
    """

    def __init__(self, phrases: Iterable[str], exceptions: Iterable[str] = ()) -> None:
        self._phrases = [_parts(phrase) for phrase in phrases]
        self._exceptions = [_parts(idiom) for idiom in exceptions]

    def finds(self, text: str) -> bool:
        """Return whether a text has one of the phrases, outside of the exceptions."""
        text = _normalised(text)
        found = _spans(self._phrases, text, "[ ,]?")
        idioms = _spans(self._exceptions, text, "[ ]?") if found else []
        return any(not any(first <= start and end <= last for first, last in idioms) for start, end in found)


def read_phrases(path: Path, key: str) -> list[str]:
    """Return the phrases of a UTF-8 file, one a line; blank lines and lines with # are passed over.

    Raises:
        UserError: the file cannot be read, holds no phrase, or a line has nothing to look for; it names the setting.
    """
    try:
        found = list(_phrases_of(path))
    except UserError as error:
        raise UserError(f"{key}: {error}") from error
    if not found:
        raise UserError(f"{key}: {path} holds no phrase; give one a line, or {key}: null for those that ship")
    return found


def _phrases_of(path: Path) -> Iterator[str]:
    for number, line in read_lines(path):
        phrase = line.strip()
        if not phrase or phrase.startswith("#"):
            continue
        if not all(_parts(phrase)):
            raise UserError(
                f"{path}:{number}: {phrase[:40]!r} has no letters to look for; give a phrase, with {GAP} only "
                "between words"
            )
        yield phrase


def _normalised(text: str) -> str:
    """Return lower-case simplified text with a blank, or a comma where there was a sign, between words."""
    plain = simplified(unicodedata.normalize("NFKC", text)).casefold()
    return _SEPARATORS.sub(lambda run: "," if "," in run[0] else " ", "".join(map(_letter, plain)))


def _letter(char: str) -> str:
    if char.isalnum():
        return char
    if char.isspace():
        return " "
    is_invisible = unicodedata.category(char) in ("Cc", "Cf", "Mn")
    return "" if is_invisible or char in _APOSTROPHES else ","


def _parts(phrase: str) -> list[str]:
    """Return the letters of a phrase between its gaps."""
    return [_SEPARATORS.sub("", _normalised(part)) for part in phrase.split(GAP)]


def _spans(phrases: Iterable[list[str]], text: str, inside: str) -> list[tuple[int, int]]:
    """Return where phrases stand in a normalised text, with `inside` allowed between their letters."""
    letters = _SEPARATORS.sub("", text)
    near = (parts for parts in phrases if all(part in letters for part in parts))  # saves most patterns
    patterns = (_GAP.join(_pattern(part, inside) for part in parts) for parts in near)
    return [match.span() for pattern in patterns for match in re.finditer(pattern, text)]


def _pattern(letters: str, inside: str) -> str:
    start = _START if letters[0].isascii() else ""
    end = _END if letters[-1].isascii() else ""
    return start + inside.join(map(re.escape, letters)) + end
