"""Word counts of a corpus, and whether a word is capitalised as names are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tasks.empathetic.data.language import ENGLISH, Language
from tasks.empathetic.selection.word_lists import word_list

RARE = 150_000
_WORD = re.compile(r"[^\W\d_]+")
_BEGINS = re.compile(r"(?:^|[.!?:;\"()*~-])[\s\"'(]*$")  # what stands before the first word of a sentence
# Capitalised words that are not names.
_NO_NAMES = word_list("no names")


class WordUse:
    """Counts of a corpus's words.

    Args:
        turns: all turns, each once.
        language: of the turns.
    """

    def __init__(self, turns: Iterable[str], language: Language = ENGLISH) -> None:
        self._counts: Counter[str] = Counter()
        self._small: Counter[str] = Counter()
        self._capital: Counter[str] = Counter()
        for turn in turns:
            self._counts.update(language.tokens_of(turn))
            self._note_capitals(turn)
        self._total = sum(self._counts.values())

    def is_rare(self, token: str) -> bool:
        """Return whether a token, lower case, is seen less than once in `RARE` tokens, as typing errors are."""
        return self._counts[token] * RARE < self._total

    def is_name(self, word: str) -> bool:
        """Return whether a word, lower case, is mostly written with a capital inside of sentences."""
        capital = self._capital[word]
        return word not in _NO_NAMES and capital > 0 and capital >= self._small[word]

    def _note_capitals(self, turn: str) -> None:
        words = _WORD.findall(turn)
        if 2 * sum(word[0].isupper() for word in words) > len(words) + 1:
            return  # shouted, or a title: its capitals carry no information
        for match in _WORD.finditer(turn):
            word = match.group()
            if word[0].islower():
                self._small[word.lower()] += 1
            elif not _BEGINS.search(turn[: match.start()]):
                self._capital[word.lower()] += 1
