"""The word lists by which clauses are found, from `words_zh.txt` and `words_en.txt`."""

from __future__ import annotations

from functools import cache

from paddle_dialog.text.word_lists import read_lists


def words(language: str, name: str) -> frozenset[str]:
    """Return a list by name."""
    return _lists(language)[name]


@cache
def alternatives(language: str, name: str) -> str:
    """Return a list as the alternatives of a regular expression, longer words first."""
    return "|".join(sorted(words(language, name), key=lambda word: (-len(word), word)))


@cache
def _lists(language: str) -> dict[str, frozenset[str]]:
    return read_lists(__package__, f"words_{language}.txt")
