"""Count how the words of scrolls (横批) and of themes go with characters, or measure the choice of scrolls.

python tools/associations.py --data train.tsv.xz
python tools/associations.py --known tests/data/known_scrolls.tsv
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from paddle_dialog.command_line import OneLineParser, integer_from, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError

ROOT = Path(__file__).resolve().parent.parent


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
    from tasks.couplet.association import count_association
    from tasks.couplet.composing import themes
    from tasks.couplet.couplets import read_couplets
    from tasks.couplet.scrolls import chooser, listing

    groups = {name: themes.usual_themes()[name].words for name in themes.main_themes()}
    of_themes = [word for words in groups.values() for word in words]
    couplets = read_couplets(source)
    tables = {
        Path("scrolls", chooser.TABLE): count_association(couplets, listing.all_words()),
        Path("composing", themes.TABLE): count_association(couplets, list(dict.fromkeys(of_themes))).grouped(
            groups
        ),
    }
    for name, table in tables.items():
        path = ROOT / "tasks" / "couplet" / name
        path.write_bytes(table.to_bytes())
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.2f} MB")


def measure(path: Path, first: int) -> None:
    """Print how often a known scroll is among the first ones that are chosen, and how often by chance."""
    from tasks.couplet.scrolls.chooser import ScrollChooser
    from tasks.couplet.scrolls.listing import all_scrolls

    chooser, found, chance, total = ScrollChooser(), 0, 0.0, 0
    for number, line in read_lines(path):
        if line.startswith("#") or not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 3:
            raise UserError(
                f"{path}:{number}: a line must be 上联<TAB>下联<TAB>横批, several 横批 with / between"
            )
        known = columns[2].split("/")
        chosen = [scroll.text for scroll in chooser.choose(columns[0], columns[1], first)]
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
