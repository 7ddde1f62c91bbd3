"""An n-gram model of poems to measure the networks against.

python -m tasks.poem.kneser_ney poems.txt.xz dev.txt

The vocabulary is that of the recipe; the bodies and their ends are predicted.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from paddle_dialog.errors import UserError
from paddle_dialog.metrics.kneser_ney import KneserNey
from tasks.poem.config import PoemConfig, PoemDataConfig
from tasks.poem.data import Poem, read_texts
from tasks.poem.task import build_vocabulary

MIN_COUNT = 5  # of configs/poem.yaml


def main() -> None:
    """Print the perplexity of an n-gram model of one file on another."""
    train, dev = (read_texts(path) for path in sys.argv[1:3])
    if isinstance(train, str) or isinstance(dev, str):
        raise UserError("give two files of poems, title<TAB>body a line")
    settings = PoemConfig(task="poem", data=PoemDataConfig(min_count=MIN_COUNT))
    vocabulary = build_vocabulary(settings, train)

    def ids(poems: Sequence[Poem]) -> list[list[int]]:
        return [vocabulary.encode(poem.body) for poem in poems]

    p = KneserNey(ids(train), len(vocabulary)).probabilities(ids(dev))
    print(f"{len(p)} characters and ends, perplexity {math.exp(-np.log(p).mean()):.2f}")


if __name__ == "__main__":
    main()
