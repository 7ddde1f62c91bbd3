"""Print the texts of GoEmotions that have labels of one side only, as reviews: 1 or 0, a tab, the text.

python tools/weights/sentiment/goemotions.py goemotions.tsv > reviews.tsv

A line of the input is split, a tab, labels with commas between, a tab, text.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from paddle_dialog.command_line import OneLineParser, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError

# fmt: off
GOOD = frozenset((
    "admiration", "amusement", "approval", "caring", "desire", "excitement", "gratitude", "joy", "love", "optimism",
    "pride", "relief",
))
BAD = frozenset((
    "anger", "annoyance", "disappointment", "disapproval", "disgust", "embarrassment", "fear", "grief", "nervousness",
    "remorse", "sadness",
))
# fmt: on


def label(emotions: frozenset[str]) -> int | None:
    """Return 1 where some emotions are good and none is bad, 0 the other way round, and None elsewhere."""
    good, bad = bool(emotions & GOOD), bool(emotions & BAD)
    return None if good == bad else int(good)


def main(arguments: argparse.Namespace) -> None:
    """Print the texts of all splits, none of which is evaluated on here."""
    path = Path(arguments.file)
    for number, line in read_lines(path):
        columns = line.split("\t")
        if len(columns) != 3:
            raise UserError(
                f"{path}:{number}: {len(columns)} columns found; a line must be split<TAB>labels<TAB>text"
            )
        _, emotions, text = columns
        side = label(frozenset(emotions.split(",")))
        if side is not None:
            print(f"{side}\t{text}")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = OneLineParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE", help="the corpus")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
