"""In which tone poets use a character that Cantonese reads in both, counted in regulated verse (律诗).

python -m paddle_dialog.tone_table.verse_tones verse.tsv

The second, fourth and sixth characters of a line alternate, and those of two antithetical lines are opposed; so
characters of one known tone tell that of the others. Cantonese has many second readings that verse never had, of
changed tones above all (人 jan4, and jan2 in 女人).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from paddle_dialog.command_line import program_parser, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.text.simplified import simplified
from paddle_dialog.text.tones import Tone, read_classes, write_classes
from paddle_dialog.tone_table.cantonese import cantonese_tones

TABLE = Path(__file__).with_name("verse_tones.txt")
LEAST_USES = 30  # of a character, to tell how poets use it
STRAY = 0.12  # share of a tone up to which it is licence or chance; below 0.07 for 95 of 100 characters of one tone
EVIDENCE = 2  # characters of known tone that must agree
_LENGTHS = (5, 7)


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
    return read_classes(TABLE)


def _pairs(path: str) -> Iterator[tuple[str, str]]:
    for _, line in read_lines(path):
        first, _, second = line.partition("\t")
        yield first, second.partition("\t")[0]


def main(arguments: argparse.Namespace) -> None:
    """Read verse and write the table."""
    counts = count_uses(_pairs(arguments.verse))
    TABLE.write_text(write_classes(classes_of_uses(*counts)), encoding="utf-8")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = program_parser(__doc__)
    parser.add_argument(
        "verse", metavar="VERSE", help="antithetical lines of verse, two a line with a tab between"
    )
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
