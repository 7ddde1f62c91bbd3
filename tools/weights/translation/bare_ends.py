"""Write translation pairs with the end mark of every fourth source taken away, as people type them."""

from __future__ import annotations

import sys
from pathlib import Path

from paddle_dialog.data.files import read_lines

EVERY = 4  # each pair is seen more than once, so every source is also seen as it is, in another run's order


def main(source: str, output: str) -> None:
    """Copy `source` (文言<TAB>白话 a line) to `output`; the translations keep their end marks."""
    with Path(output).open("w", encoding="utf-8") as file:
        for number, line in read_lines(Path(source)):
            classical, modern = line.split("\t")
            bare = classical.rstrip("。！？；")
            file.write(f"{bare if number % EVERY == 0 and bare else classical}\t{modern}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
