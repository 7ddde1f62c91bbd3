"""Make the table of tones from libraries of pronunciations and from how poets use characters.

python tools/weights/tone_table.py
python tools/weights/tone_table.py --verse verse.tsv

The classes of the rhyme books (平水韵) live on in Cantonese, which kept the entering tone: jyutping tones 1
and 4 without a final p, t or k are level, all others oblique. Mandarin lost the entering tone, so it only
answers for characters that have no Cantonese reading.

Where Cantonese has readings of both classes, many of which verse never had, regulated verse tells which of them count
(`verse_tones.txt`, which `--verse` counts); for characters that verse hardly has, those that Mandarin has too.

In regulated verse the second, fourth and sixth characters of a line alternate, and those of two antithetical lines
are opposed; so characters of one known tone tell that of the others. Cantonese has many second readings that verse
never had, of changed tones above all (人 jan4, and jan2 in 女人).

ToJyutping (Cantonese) and pypinyin (Mandarin) are development requirements: at run time the table is enough.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pypinyin
import ToJyutping

from paddle_dialog.command_line import program_parser, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.text.characters import CLASSES, TONE_TABLE, Tone, is_hanzi, read_classes, simplified

VERSE_TABLE = Path(__file__).with_name("verse_tones.txt")
# Second readings of the rhyme books that verse has too seldom to show them, but living words have (中的, 正月).
SELDOM = frozenset("中空间忘望正任王冠汗叹当难传华行应藏疏禅凭奔宁教将几燕")
LEAST_USES = 30  # of a character, to tell how poets use it
STRAY = 0.12  # share of a tone up to which it is licence or chance; below 0.07 for 95 of 100 characters of one tone
EVIDENCE = 2  # characters of known tone that must agree
_LENGTHS = (5, 7)
_STOPS = "ptk"


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


def cantonese_tones(char: str) -> frozenset[Tone]:
    """Return the tone classes of all Cantonese readings of a character, none where it has no reading."""
    return frozenset(map(_tone, _readings(char)))


def has_entering_tone(char: str) -> bool:
    """Return whether one of the two commonest readings of a character ends in p, t or k."""
    return any(reading[-2] in _STOPS for reading in _readings(char)[:2])


def _readings(char: str) -> list[str]:
    ((_, readings),) = ToJyutping.get_jyutping_candidates(char)
    # A few readings have two syllables (哩 jing1 lei5, the English mile) and so no single tone.
    return [reading for reading in readings if " " not in reading]


def _tone(reading: str) -> Tone:
    is_level = reading[-1] in "14" and reading[-2] not in _STOPS
    return Tone.LEVEL if is_level else Tone.OBLIQUE


def _mandarin_tones(char: str) -> frozenset[Tone]:
    readings = pypinyin.pinyin(char, style=pypinyin.Style.TONE3, heteronym=True, errors="ignore")
    numbers = {reading[-1] for syllable in readings for reading in syllable} & set("1234")
    return frozenset(Tone.LEVEL if number in "12" else Tone.OBLIQUE for number in numbers)


def verse_tones(char: str) -> frozenset[Tone]:
    """Return the tones in which poets use a character; none where Cantonese has one, or there are too few uses."""
    return _table().get(simplified(char), frozenset())


def count_uses(pairs: Iterable[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
    """Count at the places that decide how often each character is level, and how often its tone is known there.

    Args:
        pairs: two antithetical lines each; those that have not five or seven characters are left out.
    """
    level: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for pair in pairs:
        if len(pair[0]) != len(pair[1]) or len(pair[0]) not in _LENGTHS:
            continue
        for char, is_level in _told(pair):
            known[char] += 1
            level[char] += is_level
    return level, known


def classes_of_uses(level: Mapping[str, int], known: Mapping[str, int]) -> dict[str, frozenset[Tone]]:
    """Return the tones of the characters that Cantonese reads in both, from counts as of `count_uses`."""
    found = {}
    for char, uses in known.items():
        if uses >= LEAST_USES and len(cantonese_tones(char)) > 1:
            share = level[char] / uses
            kept = {Tone.LEVEL: share > STRAY, Tone.OBLIQUE: share < 1 - STRAY}
            found[char] = frozenset(tone for tone, is_kept in kept.items() if is_kept)
    return found


def _told(pair: tuple[str, str]) -> Iterator[tuple[str, bool]]:
    """Yield the characters at the deciding places whose tone the others agree on, and whether it is level."""
    signs = [[_sign(char) for char in line[1::2]] for line in pair]  # +1 level, -1 oblique, 0 not known
    for own, line in enumerate(pair):
        for place, char in enumerate(line[1::2]):
            votes = [
                sign * (1 if (place - other) % 2 == 0 else -1) * (1 if number == own else -1)
                for number, row in enumerate(signs)
                for other, sign in enumerate(row)
                if sign and (number, other) != (own, place)
            ]
            if len(votes) >= EVIDENCE and len(set(votes)) == 1:
                yield char, votes[0] > 0


@cache
def _sign(char: str) -> int:
    known = cantonese_tones(char)
    return 0 if len(known) != 1 else (1 if Tone.LEVEL in known else -1)


@cache
def _table() -> dict[str, frozenset[Tone]]:
    return read_classes(VERSE_TABLE)


def _pairs(path: str) -> Iterator[tuple[str, str]]:
    for _, line in read_lines(path):
        first, _, second = line.partition("\t")
        yield first, second.partition("\t")[0]


def write_classes(known: Mapping[str, frozenset[Tone]]) -> str:
    """Return the tone classes of characters as a table has them: a line for each of `CLASSES`, sorted."""
    return "".join("".join(char for char in sorted(known) if known[char] == one) + "\n" for one in CLASSES)


def main(arguments: argparse.Namespace) -> None:
    """Write the table of verse where verse is given, and the table of tones."""
    if arguments.verse is not None:
        counts = count_uses(_pairs(arguments.verse))
        VERSE_TABLE.write_text(write_classes(classes_of_uses(*counts)), encoding="utf-8")
    TONE_TABLE.write_text(write_tones(map(chr, range(sys.maxunicode + 1))), encoding="utf-8")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = program_parser(__doc__)
    parser.add_argument("--verse", metavar="FILE", help="antithetical lines, two a line with a tab between")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
