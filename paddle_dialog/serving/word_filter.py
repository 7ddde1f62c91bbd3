"""Words that an operator bans from requests and answers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.simplified import simplified_line

# A letter, digit or underscore other than hanzi: Chinese puts no blanks between words.
_LETTER = r"[^\W\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003347f]"
_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"'})


class WordFilter:
    """Finds words in texts.

    A word with a hanzi is found anywhere, blanks and invisible characters between its characters aside. Any other
    one is found as a whole word, whatever its case and width: `ass` is not found in `class`.

    Args:
        words: words or phrases; blank ones are dropped.
        path: the file they stand in, if they do.
    """

    def __init__(self, words: Iterable[str] = (), path: str | None = None) -> None:
        self.path = path
        self.words: Sequence[str] = [word.strip() for word in words if _spaced(word)]
        self._chinese = [_joined(word) for word in self.words if any(map(is_hanzi, word))]
        others = [re.escape(_spaced(word)) for word in self.words if not any(map(is_hanzi, word))]
        others.sort(key=len, reverse=True)
        pattern = rf"(?<!{_LETTER})(?:{'|'.join(others)})(?!{_LETTER})"
        self._others = re.compile(pattern) if others else None

    @classmethod
    def load(cls, path: str | None) -> WordFilter:
        """Load the words of a UTF-8 file, one a line; no file gives an empty filter."""
        if path is None:
            return cls()
        words = cls((line for _, line in read_lines(path)), path)
        if not words.words:
            raise UserError(f"banned_words: {path} holds no word; give one a line, or banned_words: null")
        return words

    def finds(self, text: str) -> bool:
        """Return whether a text has one of the words."""
        if self._others is not None and self._others.search(_spaced(text)):
            return True
        joined = _joined(text) if self._chinese else ""
        return any(word in joined for word in self._chinese)


def _joined(text: str) -> str:
    """Return a text as Chinese words are looked for in it: simplified, without blanks and invisible characters."""
    return simplified_line(text).casefold()


def _spaced(text: str) -> str:
    """Return a text as other words are looked for in it: of one case and width, its words one blank apart."""
    plain = unicodedata.normalize("NFKC", text.translate(_PLAIN)).casefold()
    return " ".join("".join(c for c in plain if unicodedata.category(c) != "Cf").split())
