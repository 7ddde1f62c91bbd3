"""The lists of words by which English replies are cleaned and compared, `word_lists.txt`."""

from __future__ import annotations

from functools import lru_cache

from paddle_dialog.text.word_lists import read_lists


def word_list(name: str) -> frozenset[str]:
    """Return a list of `word_lists.txt` by name."""
    return _lists()[name]


@lru_cache(maxsize=1)
def _lists() -> dict[str, frozenset[str]]:
    assert __package__ is not None
    return read_lists(__package__, "word_lists.txt")
