"""An n-gram model of the characters of Chinese replies, to measure the networks against.

python -m tasks.empathetic.measuring.kneser_ney smile_train.jsonl.xz smile_dev.jsonl

The replies are cut as the recipe cuts them, and each is predicted with its end, without its context.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np

from paddle_dialog.command_line import program_parser, run_tool
from paddle_dialog.metrics.kneser_ney import KneserNey
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.sources import read_dialogues

REPLY_CHARACTERS = 40  # of configs/empathetic_zh.yaml
MIN_COUNT, MOST = 2, 6000  # of the characters; so many to the fifth power fit into 64 bits
ORDER = 5


def perplexity(train: Sequence[str], dev: Sequence[str]) -> float:
    """Return the perplexity of a model of some replies on others, per character and end."""
    vocabulary = Vocabulary.build(train, MIN_COUNT, MOST)
    model = KneserNey([vocabulary.encode(text) for text in train], len(vocabulary), ORDER)
    p = model.probabilities([vocabulary.encode(text) for text in dev])
    return math.exp(-np.log(p).mean())


def replies_of(path: str) -> list[str]:
    """Return the listener's turns of a file, cut."""
    return [dialogue.target for dialogue in read_dialogues(path, "zh", REPLY_CHARACTERS) if dialogue.target]


def main(arguments: argparse.Namespace) -> None:
    """Print the perplexity of a model of all files but the last on the last."""
    dev = replies_of(arguments.dev)
    found = perplexity([reply for path in arguments.train for reply in replies_of(path)], dev)
    print(f"{sum(map(len, dev)) + len(dev):,} characters and ends, perplexity {found:.2f}")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = program_parser(__doc__)
    parser.add_argument("train", metavar="TRAIN", nargs="+", help="conversations to learn from")
    parser.add_argument("dev", metavar="DEV", help="conversations to measure")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
