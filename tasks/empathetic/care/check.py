"""Print the turns of a file that speak of self-harm, to try a list of phrases on conversations.

python -m tasks.empathetic.care.check -c configs/empathetic.yaml --input dialogues.jsonl

A line is a turn, or `{"turns": [turn, …]}`, of which the speaker's are read, or `{"context": [turn, …]}`, of which
the last is read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from paddle_dialog.command_line import base_parser, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config
from tasks.empathetic.care.responder import care_responder
from tasks.empathetic.config import EmpatheticConfig


def main(arguments: argparse.Namespace) -> None:
    """Print the turns that are found, and on stderr how many there are."""
    _, config = load_config(arguments.config, arguments.override)
    if not isinstance(config, EmpatheticConfig):
        raise UserError(f"{arguments.config}: care belongs to the task 'empathetic'; name a config of it")
    care = care_responder(config.care)
    turns = found = 0
    for _, line in read_lines(arguments.input):
        for turn in _speaker_turns(line):
            turns += 1
            if care.answer(turn, config.language) is not None:
                found += 1
                print(turn)
    print(f"{found:,} of {turns:,} turns ({found / max(turns, 1):.3%})", file=sys.stderr)


def _speaker_turns(line: str) -> Iterator[str]:
    """Yield the turns of a line that the speaker says."""
    try:
        record = json.loads(line)
    except ValueError:
        record = line
    if isinstance(record, dict):
        turns = record.get("turns")
        spoken = turns[::2] if isinstance(turns, list) else record.get("context", [])[-1:]
        yield from (turn for turn in spoken if isinstance(turn, str))
    elif line.strip():
        yield line


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__)
    parser.add_argument("--input", metavar="FILE", required=True, help="the turns; `.xz` and `.gz` too")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
