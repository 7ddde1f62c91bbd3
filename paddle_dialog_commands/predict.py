"""Answer inputs with a trained model.

python tools/predict.py -c configs/couplet_lstm.yaml 晚风摇树树还挺 --n-best 5
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.command_line import base_parser, integer_from, load_model
from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle_dialog.task import Predictor

Line = tuple[int, str]  # number from 1, text


def main(arguments: argparse.Namespace) -> None:
    """Answers the texts of the command line, of ``--input``, or of a terminal line by line."""
    if arguments.text and arguments.input:
        raise UserError("give texts or --input, not both")
    predictor = load_model(arguments)
    if arguments.n_best is not None:
        ask_for(predictor, arguments.n_best)
    if arguments.template is not None:
        lock_characters(predictor, checked_text(arguments.template))
    if arguments.text:
        answer(predictor, [checked_text(text) for text in arguments.text], arguments.json)
    elif arguments.input is None and sys.stdin.isatty():
        converse(predictor, arguments.json)
    else:
        answer_lines(predictor, arguments.input or "-", arguments.json)


def ask_for(predictor: Predictor, n_best: int) -> None:
    """Sets the number of candidates, and a beam that holds them."""
    decoding = predictor.config.decoding
    if decoding.strategy == "greedy" and n_best > 1:
        raise UserError(
            f"--n-best {n_best}: greedy search gives one candidate; take -o decoding.strategy=beam or sample"
        )
    size = max(decoding.beam_size, n_best)
    predictor.config.decoding = dataclasses.replace(decoding, n_best=n_best, beam_size=size)


def lock_characters(predictor: Predictor, template: str) -> None:
    """Sets the characters that every 下联 has."""
    from tasks.couplet.prediction import CoupletPredictor

    if not isinstance(predictor, CoupletPredictor):
        raise UserError("--template locks characters of a 下联; this model does not write couplets")
    predictor.template = template


def checked_text(text: str) -> str:
    """An argument, which a terminal of another encoding may have spoilt."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            "a text on the command line is not UTF-8; set the terminal to UTF-8 or use --input"
        ) from error
    return text


def answer(predictor: Predictor, texts: list[str], as_json: bool) -> None:
    """Prints one record a text, or nothing where one of them is faulty."""
    for record in list(predictor.predict_records(texts)):
        print(
            json.dumps(record, ensure_ascii=False) if as_json else predictor.format_record(record), flush=True
        )


def answer_lines(predictor: Predictor, name: str, as_json: bool) -> None:
    """Answers a file in batches, up to its end or its first faulty line.

    Raises:
        UserError: a line cannot be read or answered; all before it have been answered.
    """
    size = predictor.config.decoding.batch_size
    lines = input_lines(name)
    any_line, fault = False, None
    while fault is None:
        batch: list[Line] = []
        try:
            for line in itertools.islice(lines, size):
                batch.append(line)
        except UserError as error:  # this line cannot be read; those before it can be answered
            fault = error
        if not batch:
            break
        any_line = True
        answer_batch(predictor, name, batch, as_json)
    if fault is not None:
        raise fault
    if not any_line:
        raise UserError(f"{shown(name)}: holds no text; give one input a line")


def answer_batch(predictor: Predictor, name: str, batch: list[Line], as_json: bool) -> None:
    """Answers a batch; where a line of it is faulty, those before it one by one."""
    try:
        answer(predictor, [text for _, text in batch], as_json)
    except UserError:
        for number, text in batch:
            try:
                answer(predictor, [text], as_json)
            except UserError as error:
                raise UserError(
                    f"{shown(name)}:{number}: {error}; the lines from this one on are not answered"
                ) from error


def converse(predictor: Predictor, as_json: bool) -> None:
    """Answers what is typed until the end of input; a faulty line is told and forgotten."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (lets the user edit the line)
    print("one line each; Ctrl-D ends", file=sys.stderr)
    prompt = "> " if sys.stdout.isatty() else ""  # it would go to stdout, among the results
    while True:
        try:
            text = input(prompt)
        except EOFError:
            print(file=sys.stderr)
            return
        except UnicodeDecodeError:
            print("error: this line is not UTF-8; set the terminal to UTF-8", file=sys.stderr)
            continue
        if not text.strip():
            continue
        try:
            answer(predictor, [checked_text(text)], as_json)
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)


def input_lines(name: str) -> Iterator[Line]:
    """The lines of a file (``.xz`` and ``.gz`` too) or, for ``-``, of standard input; blank ones are skipped."""
    from paddle_dialog.data.files import read_lines

    lines: Iterable[Line] = standard_input() if name == "-" else read_lines(Path(name))
    return ((number, line.strip()) for number, line in lines if line.strip())


def standard_input() -> Iterator[Line]:
    """The lines of standard input as UTF-8, whatever the locale."""
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        try:
            yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"standard input:{number}: not UTF-8 ({error.reason}); convert the text first"
            ) from error


def shown(name: str) -> str:
    """An input's name for a message."""
    return "standard input" if name == "-" else name


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = base_parser(__doc__)
    parser.add_argument(
        "text", nargs="*", help="inputs; without any, and without --input, they are asked for"
    )
    parser.add_argument(
        "--weights", metavar="DIR", help="a bundle (default: the config's run, else the shipped one)"
    )
    parser.add_argument("--input", metavar="FILE", help="one input a line; - reads standard input")
    parser.add_argument("--n-best", type=integer_from(1), metavar="N", help="candidates for each input")
    parser.add_argument(
        "--template",
        metavar="TEXT",
        help="characters of the 下联, ？ where any may stand, e.g. ？？？？花更红",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser
