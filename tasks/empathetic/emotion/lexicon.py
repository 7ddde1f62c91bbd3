"""Words that hint at an emotion, by default those of the NRC lexicon (Mohammad and Turney, 2013)."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary

_PACKAGE, _DISTRIBUTION, _DATA_FILE = "nrclex", "NRCLex", "nrc_en.json"


class EmotionLexicon:
    """A set of lower-case words; `word in lexicon` and `len(lexicon)` work as for a set.

    Args:
        words: the words, in any case.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(word.lower() for word in words)

    @classmethod
    def load(cls, source: str = "nrc") -> EmotionLexicon:
        """Read a lexicon.

        Args:
            source: `nrc` (the lexicon inside the installed PyPI package NRCLex, read without importing it), a
                `.json` file `{"word": [category, …], …}`, of which words without a category are left out, or
                a text file of one word a line; both UTF-8, `.xz` and `.gz` allowed.

        Raises:
            UserError: the package is not installed, or the file cannot be read or has no word.
        """
        path = _nrc_path() if source == "nrc" else Path(source)
        suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
        words = _json_words(path) if ".json" in suffixes else _lines(path)
        if not words:
            raise UserError(f"{path}: no word in this lexicon; give one word a line or JSON word → list")
        return cls(words)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and word.lower() in self._words

    def __len__(self) -> int:
        return len(self._words)

    def hints(self, tokens: Iterable[str]) -> list[int]:
        """Return 1 for each token that is in the lexicon, 0 for each that is not."""
        return [int(token in self) for token in tokens]

    def to_marks(self, vocabulary: Vocabulary) -> bytes:
        """Return the lexicon as a file of a bundle, so that answering needs none: a line for each token, 1 or 0."""
        return "".join(f"{hint}\n" for hint in self.hints(vocabulary)).encode("ascii")

    @classmethod
    def from_marks(cls, marks: bytes, vocabulary: Vocabulary, where: str) -> EmotionLexicon:
        """Make a lexicon of the words that the marks of a vocabulary's tokens name.

        Args:
            marks: what `to_marks` made.
            vocabulary: for which it made them.
            where: the file, for messages.

        Raises:
            UserError: the marks are malformed, or their number differs.
        """
        lines = marks.split(b"\n")
        if lines.pop() or set(lines) - {b"0", b"1"} or len(lines) != len(vocabulary):
            raise UserError(
                f"{where}: must hold {len(vocabulary):,} lines of 0 or 1, one for each line of the vocabulary; "
                "take another bundle"
            )
        return cls(token for token, mark in zip(vocabulary, lines, strict=True) if mark == b"1")


def _nrc_path() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    folders = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    for folder in folders:
        for path in sorted(folder.rglob(_DATA_FILE)):
            return path
    state = "has no " + _DATA_FILE if folders else "is not installed"
    raise UserError(
        f"emotion lexicon nrc: the package {_DISTRIBUTION} {state}; pip install {_DISTRIBUTION}==4.1.0, "
        "name a file of one word a line, or take a bundle that has hints.txt"
    )


def _json_words(path: Path) -> list[str]:
    text = "\n".join(line for _, line in read_lines(path))
    try:
        table = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno}: broken JSON ({error.msg}); a lexicon is word → list"
        ) from error
    if not isinstance(table, dict):
        raise UserError(
            f'{path}: a JSON {type(table).__name__} found; a lexicon is {{"word": [category, …]}}'
        )
    for word, categories in table.items():
        if not isinstance(categories, list):
            raise UserError(f"{path}: the value of {word!r} is not a list; a lexicon is word → list")
    return [word for word, categories in table.items() if categories]


def _lines(path: Path) -> list[str]:
    words = []
    for number, line in read_lines(path):
        word = line.strip()
        if len(word.split()) > 1:
            raise UserError(f"{path}:{number}: {word[:40]!r} is more than one word; give one word a line")
        if word:
            words.append(word)
    return words
