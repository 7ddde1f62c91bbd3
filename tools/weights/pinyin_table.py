"""Write the commonest reading of each character that the bundles know, for the page in English.

python tools/weights/pinyin_table.py

A line a syllable, its characters after it; the readings are those of pypinyin.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import pypinyin

from paddle_dialog.command_line import program_parser, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.text.characters import is_hanzi

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "paddle_dialog" / "serving" / "page" / "pinyin.txt"


def readings(characters: set[str]) -> str:
    """Return the table of characters."""
    found: dict[str, list[str]] = defaultdict(list)
    for char in sorted(characters):
        found[pypinyin.pinyin(char)[0][0]].append(char)
    return "".join(f"{syllable} {''.join(chars)}\n" for syllable, chars in sorted(found.items()))


def main(arguments: argparse.Namespace) -> None:
    """Write the table."""
    words = [
        word
        for task in ("couplet", "poem")
        for _, word in read_lines(ROOT / "pretrained" / task / "text.vocabulary.txt")
    ]
    TABLE.write_text(
        readings({word for word in words if len(word) == 1 and is_hanzi(word)}), encoding="utf-8"
    )


if __name__ == "__main__":
    sys.exit(run_tool(main, program_parser(__doc__)))
