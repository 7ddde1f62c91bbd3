"""Count how the words of scrolls (横批) and of themes go with characters, or measure the choice of scrolls.

python tools/weights/couplet/associations.py --data train.tsv.xz
python tools/weights/couplet/associations.py --known tools/weights/couplet/known_scrolls.tsv
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from paddle_dialog.command_line import OneLineParser, integer_from, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.composing.request import main_themes, usual_themes
from paddle_dialog.tasks.couplet.composing.scrolls import (
    SCROLL_TABLE,
    STEPS,
    THEME_TABLE,
    Association,
    all_scrolls,
    choose_scrolls,
    words_of,
)
from paddle_dialog.tasks.couplet.couplets import Couplet, read_couplets
from paddle_dialog.text.characters import is_hanzi

FOLDER = Path(__file__).resolve().parents[3] / "tasks" / "couplet" / "composing"
LEAST = 1.0  # nats; weaker associations are noise, and are left out
LEAST_COUNT = 5  # couplets with a character, for it to be in the table
PRIOR = 20.0  # couplets without any association that are added to those of each word


def main(arguments: argparse.Namespace) -> None:
    """Count, or measure."""
    if (arguments.data is None) == (arguments.known is None):
        raise UserError("give either --data, to count, or --known, to measure")
    if arguments.data is not None:
        count(arguments.data)
    else:
        measure(Path(arguments.known), arguments.first)


def count(source: str) -> None:
    """Write both tables."""
    groups = {name: usual_themes()[name].words for name in main_themes()}
    of_themes = [word for words in groups.values() for word in words]
    of_scrolls = [word for scroll in all_scrolls() for word in words_of(scroll)]
    couplets = read_couplets(source)
    tables = {
        SCROLL_TABLE: count_association(couplets, list(dict.fromkeys(of_scrolls))),
        THEME_TABLE: grouped(count_association(couplets, list(dict.fromkeys(of_themes))), groups),
    }
    for name, table in tables.items():
        words, characters = np.array(table.words), np.array(table.characters)
        np.savez_compressed(FOLDER / name, words=words, characters=characters, steps=table.steps)
        print(f"{name}: {(FOLDER / name).stat().st_size / 1e6:.2f} MB")


def count_association(couplets: Iterable[Couplet], words: Sequence[str]) -> Association:
    """Count the table of words of two characters over couplets.

    A couplet counts for each of the words that stand in one of its lines, and a character once in a couplet.
    """
    wanted = set(words)
    total, couplets_with, of_word = 0, Counter[str](), Counter[str]()
    together: dict[str, Counter[str]] = {word: Counter() for word in words}
    for couplet in couplets:
        characters = {c for c in couplet.first + couplet.second if is_hanzi(c)}
        total += 1
        couplets_with.update(characters)
        lines = (couplet.first, couplet.second)
        for word in {line[i : i + 2] for line in lines for i in range(len(line) - 1)} & wanted:
            of_word[word] += 1
            together[word].update(characters)
    kept = sorted(c for c, count in couplets_with.items() if count >= LEAST_COUNT)
    share = np.array([couplets_with[c] / total for c in kept])  # [C]
    steps = np.zeros((len(kept), len(words)), dtype=np.uint8)
    for place, word in enumerate(words):
        counts = np.array([together[word][c] for c in kept])
        likely = (counts + PRIOR * share) / (of_word[word] + PRIOR)
        nats = np.log(likely / share)
        steps[:, place] = np.where(nats >= LEAST, np.minimum(nats * STEPS, 255), 0).round()
    return Association(tuple(words), "".join(kept), steps)


def grouped(table: Association, groups: Mapping[str, Sequence[str]]) -> Association:
    """Return a table with groups for words: the mean of the words of each."""
    places = {word: place for place, word in enumerate(table.words)}
    means = [table.steps[:, [places[w] for w in words]].mean(axis=1).round() for words in groups.values()]
    return Association(tuple(groups), table.characters, np.stack(means, axis=1).astype(np.uint8))


def measure(path: Path, first: int) -> None:
    """Print how often a known scroll is among the first ones that are chosen, and how often by chance."""
    found, chance, total = 0, 0.0, 0
    for number, line in read_lines(path):
        if line.startswith("#") or not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 3:
            raise UserError(
                f"{path}:{number}: a line must be 上联<TAB>下联<TAB>横批, several 横批 with / between"
            )
        known = columns[2].split("/")
        chosen = [scroll.text for scroll in choose_scrolls(columns[0], columns[1], first)]
        right = any(scroll in known for scroll in chosen)
        total, found, chance = total + 1, found + right, chance + first * len(known) / len(all_scrolls())
        print(f"{'+' if right else '-'} {columns[0]} {columns[1]}  {columns[2]}: {' '.join(chosen)}")
    print(
        f"{found} of {total} among the first {first}; {chance:.1f} by chance, of {len(all_scrolls())} scrolls"
    )


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    purpose, _, example = (__doc__ or "").partition("\n\n")
    parser = OneLineParser(description=purpose, epilog=f"example: {example.strip()}")
    parser.add_argument("--data", metavar="SOURCE", help="training couplets; writes the table that ships")
    parser.add_argument("--known", metavar="FILE", help="上联<TAB>下联<TAB>横批, to be found again")
    parser.add_argument("--first", type=integer_from(1), default=5, metavar="N", help="scrolls looked at")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
