"""Level (平) and oblique (仄) tones of hanzi, from the table beside this file.

`tools/weights/tone_table.py` makes the table and says where its classes come from.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from pathlib import Path


class Tone(Enum):
    """The two tone classes of Chinese verse."""

    LEVEL = "平"
    OBLIQUE = "仄"


TABLE = Path(__file__).with_name("tones.txt")
# The tones of the characters on each line of the table.
CLASSES = (frozenset({Tone.LEVEL}), frozenset({Tone.OBLIQUE}), frozenset({Tone.LEVEL, Tone.OBLIQUE}))
_UNKNOWN: frozenset[Tone] = frozenset()


def tones(char: str) -> frozenset[Tone]:
    """Return the tone classes of all readings of a character.

    Returns:
        Both classes if the readings differ, none if the character is not a hanzi or its readings are not known.
    """
    return _table().get(char, _UNKNOWN)


def can_be_level(char: str) -> bool:
    """Return whether some reading of the character has a level tone (平)."""
    return Tone.LEVEL in tones(char)


def can_be_oblique(char: str) -> bool:
    """Return whether some reading of the character has an oblique tone (仄)."""
    return Tone.OBLIQUE in tones(char)


def read_classes(path: Path) -> dict[str, frozenset[Tone]]:
    """Read the tone classes of characters from a table with a line for each of `CLASSES`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {char: known for line, known in zip(lines, CLASSES, strict=True) for char in line}


@cache
def _table() -> dict[str, frozenset[Tone]]:
    return read_classes(TABLE)
