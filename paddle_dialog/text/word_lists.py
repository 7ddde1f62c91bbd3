"""Lists of words in text files."""

from __future__ import annotations

import importlib.resources
import re

_HEAD = re.compile(r"\[(?P<name>[^]]+)\].*")


def read_lists(package: str, name: str) -> dict[str, frozenset[str]]:
    """Read the lists of a text file of a package: `[name]` and a remark, then the words, with blanks between them."""
    text = (importlib.resources.files(package) / name).read_text(encoding="utf-8")
    lists: dict[str, set[str]] = {}
    for line in text.splitlines():
        head = _HEAD.fullmatch(line)
        if head is not None:
            words = lists.setdefault(head["name"], set())
        else:
            words.update(line.split())
    return {name: frozenset(words) for name, words in lists.items()}
