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
from functools import partial
from pathlib import Path

from paddle_dialog.command_line import base_parser, integer_from, load_model
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import GenerationPredictor, Predictor
from paddle_dialog.processes import can_fork, map_in_order, usable_cores

Line = tuple[int, str]  # number from 1, text
Batch = tuple[list[Line], UserError | None]  # and what is wrong with the line after them


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
        show(answer(predictor, [checked_text(text) for text in arguments.text], arguments.json))
    elif arguments.input is None and sys.stdin.isatty():
        converse(predictor, arguments.json)
    else:
        answer_lines(predictor, arguments.input or "-", arguments.json, arguments.workers)


def ask_for(predictor: Predictor, n_best: int) -> None:
    """Sets the number of candidates, and a beam that holds them."""
    if not isinstance(predictor, GenerationPredictor):
        raise UserError(f"--n-best: a model of the task '{predictor.config.task}' writes no candidates")
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


def answer(predictor: Predictor, texts: list[str], as_json: bool) -> list[str]:
    """A record a text, as it is printed; nothing where one of the texts is faulty."""
    return [
        json.dumps(record, ensure_ascii=False) if as_json else predictor.format_record(record)
        for record in predictor.predict_records(texts)
    ]


def show(records: Iterable[str]) -> None:
    """Prints records."""
    for record in records:
        print(record, flush=True)


def answer_lines(predictor: Predictor, name: str, as_json: bool, workers: int | None) -> None:
    """Answers a file in batches, up to its end or its first faulty line.

    Raises:
        UserError: a line cannot be read or answered; all before it have been answered.
    """
    processes = usable_cores() if workers is None else workers
    if processes > 1 and not can_fork():
        processes = 1
        if workers is not None:
            print("answering in one process: several need Linux and a model over arrays", file=sys.stderr)
    any_line = False
    batches = input_batches(name, predictor.batch_size)
    answers = map_in_order(partial(answer_batch, predictor, name, as_json), batches, processes)
    with contextlib.closing(answers):
        for records, fault in answers:
            show(records)
            if fault is not None:
                raise fault
            any_line = any_line or bool(records)
    if not any_line:
        raise UserError(f"{shown(name)}: holds no text; give one input a line")


def input_batches(name: str, size: int) -> Iterator[Batch]:
    """The lines of an input in batches, up to its end or a line that cannot be read."""
    lines = input_lines(name)
    fault = None
    while fault is None:
        batch: list[Line] = []
        try:
            for line in itertools.islice(lines, size):
                batch.append(line)
        except UserError as error:  # this line cannot be read; those before it can be answered
            fault = error
        if not batch and fault is None:
            return
        yield batch, fault


def answer_batch(
    predictor: Predictor, name: str, as_json: bool, batch: Batch
) -> tuple[list[str], UserError | None]:
    """The records of a batch up to its first faulty line, and what is wrong with that."""
    lines, fault = batch
    try:
        return answer(predictor, [text for _, text in lines], as_json), fault
    except UserError:
        records: list[str] = []
        for number, text in lines:
            try:
                records += answer(predictor, [text], as_json)
            except UserError as error:
                told = f"{shown(name)}:{number}: {error}; the lines from this one on are not answered"
                return records, UserError(told)
        return records, fault


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
            show(answer(predictor, [checked_text(text)], as_json))
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
    parser.add_argument(
        "--workers",
        type=integer_from(1),
        metavar="N",
        help="processes that answer the lines of an input (default: the cores)",
    )
    parser.add_argument("--n-best", type=integer_from(1), metavar="N", help="candidates for each input")
    parser.add_argument(
        "--template",
        metavar="TEXT",
        help="characters of the 下联, ？ where any may stand, e.g. ？？？？花更红",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser
