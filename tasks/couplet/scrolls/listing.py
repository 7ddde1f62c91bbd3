"""The traditional scrolls and their occasions."""

from __future__ import annotations

import importlib.resources
from functools import cache

MOURNING = "挽联"  # its scrolls go with nothing else


@cache
def occasions() -> dict[str, tuple[str, ...]]:
    """Return each occasion with its scrolls, see `scrolls.txt`."""
    text = (importlib.resources.files(__package__) / "scrolls.txt").read_text(encoding="utf-8")
    rows = (line.partition(":") for line in text.splitlines() if line and not line.startswith("#"))
    return {occasion: tuple(scrolls.split()) for occasion, _, scrolls in rows}


@cache
def all_scrolls() -> tuple[str, ...]:
    """Return every scroll once."""
    return tuple(dict.fromkeys(scroll for scrolls in occasions().values() for scroll in scrolls))


def all_words() -> tuple[str, ...]:
    """Return every word of a scroll once."""
    return tuple(dict.fromkeys(word for scroll in all_scrolls() for word in words_of(scroll)))


def words_of(scroll: str) -> tuple[str, str]:
    """Return the two words of a scroll."""
    return scroll[:2], scroll[2:]
