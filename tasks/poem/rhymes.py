"""The thirty level rhymes of classical verse (平水韵): which of them a character belongs to.

The table beside this file was made from verse: python tools/data/rhyme_table.py poems.txt.xz
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("rhymes.txt")
NAMES = "东冬江支微鱼虞齐佳灰真文元寒删先萧肴豪歌麻阳庚青蒸尤侵覃盐咸"
_NONE: frozenset[str] = frozenset()


def rhymes(char: str) -> frozenset[str]:
    """Return the rhymes of a character by their names, e.g. 东; none where it has no level reading or is too rare."""
    return _table().get(char, _NONE)


def common_rhymes(characters: str) -> frozenset[str]:
    """Return the rhymes that all characters share; all thirty for no character."""
    return frozenset(NAMES).intersection(*map(rhymes, characters))


@cache
def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        name, _, members = line.partition(" ")
        for char in members:
            found.setdefault(char, set()).add(name)
    return {char: frozenset(names) for char, names in found.items()}
