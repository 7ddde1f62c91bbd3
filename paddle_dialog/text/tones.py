"""Level (平) and oblique (仄) tones of hanzi, from libraries of readings.

The classes of the rhyme books (平水韵) live on in Cantonese, which kept the entering tone: jyutping tones 1
and 4 without a final p, t or k are level, all others oblique. Mandarin lost the entering tone, so it only
answers for characters that have no Cantonese reading.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from enum import Enum
from functools import cache
from types import ModuleType

from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi


class Tone(Enum):
    """The two tone classes of Chinese verse."""

    LEVEL = "平"
    OBLIQUE = "仄"


_CLASSES = (frozenset({Tone.LEVEL}), frozenset({Tone.OBLIQUE}), frozenset({Tone.LEVEL, Tone.OBLIQUE}))
_REMEMBERED: dict[str, frozenset[Tone]] = {}


@cache
def tones(char: str) -> frozenset[Tone]:
    """Return the tone classes of all readings of a character.

    Args:
        char: one character.

    Returns:
        Both classes if the readings differ, none if the character is no hanzi or no library knows it.
    """
    if not is_hanzi(char):
        return frozenset()
    if char in _REMEMBERED:
        return _REMEMBERED[char]
    return _cantonese_tones(char) or _mandarin_tones(char)


def can_be_level(char: str) -> bool:
    """Return whether some reading of the character has a level tone (平)."""
    return Tone.LEVEL in tones(char)


def can_be_oblique(char: str) -> bool:
    """Return whether some reading of the character has an oblique tone (仄)."""
    return Tone.OBLIQUE in tones(char)


def write_tones(characters: Iterable[str]) -> str:
    """Return the tones of characters as text, which `remember_tones` reads without the libraries of readings.

    Args:
        characters: any; those without a known tone are left out.

    Returns:
        Three lines: the level, the oblique and those that can be both, each in code point order.
    """
    found = [(char, tones(char)) for char in sorted(set(characters))]
    return "".join("".join(c for c, known in found if known == tone) + "\n" for tone in _CLASSES)


def remember_tones(text: str) -> None:
    """Answer for the characters of a text of `write_tones` from now on, which spares loading the libraries.

    Args:
        text: what `write_tones` returned.

    Raises:
        UserError: it has another form.
    """
    lines = text.splitlines()
    if len(lines) != len(_CLASSES):
        raise UserError(
            f"the tones have {len(lines)} lines; they must have three: level, oblique, and characters of both"
        )
    _REMEMBERED.update((char, known) for line, known in zip(lines, _CLASSES, strict=True) for char in line)


def _cantonese_tones(char: str) -> frozenset[Tone]:
    ((_, readings),) = _cantonese_readings().get_jyutping_candidates(char)
    # A few readings have two syllables (哩 jing1 lei5, the English mile) and no tone that is theirs.
    return frozenset(_jyutping_tone(reading) for reading in readings if " " not in reading)


def _jyutping_tone(reading: str) -> Tone:
    is_level = reading[-1] in "14" and reading[-2] not in "ptk"
    return Tone.LEVEL if is_level else Tone.OBLIQUE


def _mandarin_tones(char: str) -> frozenset[Tone]:
    import pypinyin  # half a second of phrase tables, needed for very rare characters only

    readings = pypinyin.pinyin(char, style=pypinyin.Style.TONE3, heteronym=True, errors="ignore")
    numbers = {reading[-1] for syllable in readings for reading in syllable} & set("1234")
    return frozenset(Tone.LEVEL if number in "12" else Tone.OBLIQUE for number in numbers)


@cache
def _cantonese_readings() -> ModuleType:
    """Import ToJyutping, which builds its whole word trie on import.

    The trie is 58,000 dictionaries that all stay, so that the garbage collector would walk through them again
    and again while they come to be; without it the import takes a third less time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        import ToJyutping
    finally:
        if was_enabled:
            gc.enable()
    return ToJyutping
