"""Answer inputs with a trained model.

python tools/predict.py -c configs/couplet_lstm.yaml 晚风摇树树还挺 --n-best 5
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.command_line import base_parser, integer_from, load_model, run_tool
from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle_dialog.task import Predictor


def main(arguments: argparse.Namespace) -> None:
    """Answers the texts of the command line, of ``--input``, or of a terminal line by line."""
    if arguments.text and arguments.input:
        raise UserError("give texts or --input, not both")
    predictor = load_model(arguments)
    if arguments.n_best is not None:
        decoding = predictor.config.decoding
        size = max(decoding.beam_size, arguments.n_best)
        predictor.config.decoding = dataclasses.replace(decoding, n_best=arguments.n_best, beam_size=size)
    if arguments.text:
        answer(predictor, arguments.text, arguments.json)
    elif arguments.input is None and sys.stdin.isatty():
        converse(predictor, arguments.json)
    else:
        for batch in batches(input_lines(arguments.input or "-"), predictor.config.decoding.batch_size):
            answer(predictor, batch, arguments.json)


def answer(predictor: Predictor, texts: list[str], as_json: bool) -> None:
    """Prints one record a text."""
    for record in predictor.predict_records(texts):
        print(
            json.dumps(record, ensure_ascii=False) if as_json else predictor.format_record(record), flush=True
        )


def converse(predictor: Predictor, as_json: bool) -> None:
    """Answers what is typed until the end of input; a faulty line is told and forgotten."""
    print("one line each; Ctrl-D ends", file=sys.stderr)
    while True:
        try:
            text = input("> ")
        except EOFError:
            return
        try:
            answer(predictor, [text], as_json)
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)


def input_lines(name: str) -> Iterator[str]:
    """The lines of a file (``.xz`` and ``.gz`` too) or, for ``-``, of standard input; blank ones are skipped."""
    from paddle_dialog.data.files import read_lines

    if name == "-":
        try:
            yield from (line.strip() for line in sys.stdin if line.strip())
        except UnicodeDecodeError as error:
            raise UserError(
                f"standard input: is not UTF-8 text ({error.reason}); convert it first"
            ) from error
    else:
        yield from (line.strip() for _, line in read_lines(Path(name)) if line.strip())


def batches(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    """Groups of ``size`` lines, the last one smaller."""
    batch: list[str] = []
    for line in lines:
        batch.append(line)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


if __name__ == "__main__":
    parser = base_parser(__doc__)
    parser.add_argument(
        "text", nargs="*", help="inputs; without any, and without --input, they are asked for"
    )
    parser.add_argument(
        "--weights", metavar="DIR", help="a bundle (default: the config's run, else the shipped one)"
    )
    parser.add_argument("--input", metavar="FILE", help="one input a line; - reads standard input")
    parser.add_argument("--n-best", type=integer_from(1), metavar="N", help="candidates for each input")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    sys.exit(run_tool(main, parser))
