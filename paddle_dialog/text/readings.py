"""Make the table of tones from libraries of pronunciations.

python -m paddle_dialog.text.readings

The classes of the rhyme books (平水韵) live on in Cantonese, which kept the entering tone: jyutping tones 1
and 4 without a final p, t or k are level, all others oblique. Mandarin lost the entering tone, so it only
answers for characters that have no Cantonese reading.

ToJyutping (Cantonese) and pypinyin (Mandarin) are development requirements: at run time the table is enough.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pypinyin
import ToJyutping

from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.tones import CLASSES, TABLE, Tone


def write_tones(characters: Iterable[str]) -> str:
    """Return the tones of characters as the table has them.

    Args:
        characters: any; those without a known tone are left out.

    Returns:
        A line for each of `CLASSES`, its characters in code point order.
    """
    found = [(char, tones_of_readings(char)) for char in sorted(set(characters))]
    return "".join("".join(c for c, known in found if known == tone) + "\n" for tone in CLASSES)


def tones_of_readings(char: str) -> frozenset[Tone]:
    """Return the tone classes of all readings of a character, none where it is no hanzi or no library knows it."""
    if not is_hanzi(char):
        return frozenset()
    return _cantonese_tones(char) or _mandarin_tones(char)


def _cantonese_tones(char: str) -> frozenset[Tone]:
    ((_, readings),) = ToJyutping.get_jyutping_candidates(char)
    # A few readings have two syllables (哩 jing1 lei5, the English mile) and so no single tone.
    return frozenset(_jyutping_tone(reading) for reading in readings if " " not in reading)


def _jyutping_tone(reading: str) -> Tone:
    is_level = reading[-1] in "14" and reading[-2] not in "ptk"
    return Tone.LEVEL if is_level else Tone.OBLIQUE


def _mandarin_tones(char: str) -> frozenset[Tone]:
    readings = pypinyin.pinyin(char, style=pypinyin.Style.TONE3, heteronym=True, errors="ignore")
    numbers = {reading[-1] for syllable in readings for reading in syllable} & set("1234")
    return frozenset(Tone.LEVEL if number in "12" else Tone.OBLIQUE for number in numbers)


if __name__ == "__main__":
    TABLE.write_text(write_tones(map(chr, range(sys.maxunicode + 1))), encoding="utf-8")
