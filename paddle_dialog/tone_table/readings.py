"""Make the table of tones from libraries of pronunciations and from how poets use characters.

python -m paddle_dialog.tone_table.readings

The classes of the rhyme books (平水韵) live on in Cantonese, which kept the entering tone: jyutping tones 1
and 4 without a final p, t or k are level, all others oblique. Mandarin lost the entering tone, so it only
answers for characters that have no Cantonese reading.

Where Cantonese has readings of both classes, many of which verse never had, regulated verse tells which of them count
(`paddle_dialog.tone_table.verse_tones`); for characters that verse hardly has, those that Mandarin has too.

ToJyutping (Cantonese) and pypinyin (Mandarin) are development requirements: at run time the table is enough.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pypinyin

from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.simplified import simplified
from paddle_dialog.text.tones import TABLE, Tone, write_classes
from paddle_dialog.tone_table.cantonese import cantonese_tones, has_entering_tone
from paddle_dialog.tone_table.verse_tones import verse_tones

# Second readings of the rhyme books that verse has too seldom to show them, but living words have (中的, 正月).
SELDOM = frozenset("中空间忘望正任王冠汗叹当难传华行应藏疏禅凭奔宁教将几燕")


def write_tones(characters: Iterable[str]) -> str:
    """Return the tones of characters as the table has them; those without a known tone are left out."""
    return write_classes({char: tones_of_readings(char) for char in characters})


def tones_of_readings(char: str) -> frozenset[Tone]:
    """Return the tone classes in which a character stands, none where it is no hanzi or no library knows it."""
    if not is_hanzi(char):
        return frozenset()
    known = cantonese_tones(char)
    if len(known) < 2 or simplified(char) in SELDOM:
        return known or _mandarin_tones(char)
    if verse_tones(char):
        return verse_tones(char)
    supported = _mandarin_tones(char) | ({Tone.OBLIQUE} if has_entering_tone(char) else set())
    return known & supported or known


def _mandarin_tones(char: str) -> frozenset[Tone]:
    readings = pypinyin.pinyin(char, style=pypinyin.Style.TONE3, heteronym=True, errors="ignore")
    numbers = {reading[-1] for syllable in readings for reading in syllable} & set("1234")
    return frozenset(Tone.LEVEL if number in "12" else Tone.OBLIQUE for number in numbers)


if __name__ == "__main__":
    TABLE.write_text(write_tones(map(chr, range(sys.maxunicode + 1))), encoding="utf-8")
