"""The lists of English words by which replies are cleaned and compared, from `word_lists.txt`."""

from __future__ import annotations

import importlib.resources
import re
from functools import lru_cache

_HEAD = re.compile(r"\[(?P<name>[^]]+)\].*")


def word_list(name: str) -> frozenset[str]:
    """Return a list by name."""
    return _lists()[name]


@lru_cache(maxsize=1)
def _lists() -> dict[str, frozenset[str]]:
    text = (importlib.resources.files(__package__) / "word_lists.txt").read_text(encoding="utf-8")
    lists: dict[str, set[str]] = {}
    for line in text.splitlines():
        head = _HEAD.fullmatch(line)
        if head is not None:
            words = lists.setdefault(head["name"], set())
        else:
            words.update(line.split())
    return {name: frozenset(words) for name, words in lists.items()}
