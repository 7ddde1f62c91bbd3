"""An n-gram model of poems to measure the networks against.

python -m tasks.poem.kneser_ney poems.txt.xz dev.txt

The vocabulary is that of the recipe; the bodies and their ends are predicted.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np

from paddle_dialog.command_line import program_parser, run_tool
from paddle_dialog.errors import UserError
from paddle_dialog.metrics.kneser_ney import KneserNey
from tasks.poem.config import PoemConfig, PoemDataConfig
from tasks.poem.data import Poem, read_texts
from tasks.poem.task import build_vocabulary

MIN_COUNT = 5  # of configs/poem.yaml


def main(arguments: argparse.Namespace) -> None:
    """Print the perplexity of an n-gram model of one file on another."""
    train, dev = read_texts(arguments.train), read_texts(arguments.dev)
    if isinstance(train, str) or isinstance(dev, str):
        raise UserError("give two files of poems, title<TAB>body a line")
    settings = PoemConfig(task="poem", data=PoemDataConfig(min_count=MIN_COUNT))
    vocabulary = build_vocabulary(settings, train)

    def ids(poems: Sequence[Poem]) -> list[list[int]]:
        return [vocabulary.encode(poem.body) for poem in poems]

    p = KneserNey(ids(train), len(vocabulary)).probabilities(ids(dev))
    print(f"{len(p)} characters and ends, perplexity {math.exp(-np.log(p).mean()):.2f}")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = program_parser(__doc__)
    parser.add_argument("train", metavar="TRAIN", help="poems to learn from, title<TAB>body a line")
    parser.add_argument("dev", metavar="DEV", help="poems to measure")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
