"""Answer inputs with a trained model.

python tools/predict.py -c configs/couplet_lstm.yaml 晚风摇树树还挺 --n-best 5
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from paddle_dialog.command_line import (
    TaskParser,
    base_parser,
    checked_text,
    integer_from,
    load_named_model,
    note,
    notes_on_stderr,
    piped_lines,
    typed_lines,
)
from paddle_dialog.data.files import Record
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import GenerationPredictor, Predictor
from paddle_dialog.processes import can_fork, map_in_order, usable_cores

Predict = Callable[[list[str]], Iterable[Record]]
Answer = Callable[[list[str]], list[str]]  # from texts to printed records
STANDARD_INPUT = "standard input"
Line = tuple[int, str | UserError]  # number from 1, text or why it cannot be read


def main(arguments: argparse.Namespace) -> None:
    """Answer the texts of the command line, of `--input`, or of a terminal line by line."""
    if arguments.text and arguments.input:
        raise UserError("give texts or --input, not both")
    predictor = load_named_model(arguments)[1].predictor
    answer = partial(answer_texts, predictor, predict_with_options(predictor, arguments), arguments.json)
    with notes_on_stderr():
        if arguments.text:
            show(answer(arguments.text))
        elif arguments.input is None and sys.stdin.isatty():
            converse(answer)
        else:
            file = None if arguments.input in ("", "-") else arguments.input
            answer_lines(answer, file, predictor.batch_size, arguments.workers)


def predict_with_options(predictor: Predictor, arguments: argparse.Namespace) -> Predict:
    """Return the function that answers texts by the arguments, the task's own included."""
    options = {
        name: checked_text(value) if isinstance(value, str) else value
        for name, value in arguments.task_options.items()
        if value is not None
    }
    n_best = arguments.n_best
    if n_best is not None:
        if not isinstance(predictor, GenerationPredictor):
            raise UserError(f"--n-best: a model of the task '{predictor.config.task}' writes no candidates")
        if n_best > 1 and predictor.config.decoding.strategy == "greedy":
            raise UserError(
                f"--n-best {n_best}: greedy search gives one candidate; take -o decoding.strategy=beam or sample"
            )
        options["n_best"] = n_best
    return partial(predictor.predict_records, **options)


def answer_texts(predictor: Predictor, predict: Predict, as_json: bool, texts: list[str]) -> list[str]:
    """Answer each text with a printed record; fail as a whole if one of the texts is faulty.

    Notes on records, which JSON has inside, go to stderr.
    """
    answers = list(predict(texts))
    if as_json:
        return [json.dumps(record, ensure_ascii=False) for record in answers]
    for remark in filter(None, map(predictor.note_of, answers)):
        note(f"note: {remark}")
    return [predictor.format_record(record) for record in answers]


def show(records: Iterable[str]) -> None:
    """Print records."""
    for record in records:
        print(record, flush=True)


def answer_lines(answer: Answer, file: str | None, batch_size: int, workers: int | None) -> None:
    """Answer a file, or standard input, in batches, up to its end or its first faulty line."""
    processes = usable_cores() if workers is None else workers
    if processes > 1 and not can_fork():
        processes = 1
        if workers is not None:
            note("answering in one process: several need Linux and a model in NumPy")
    lines, any_line = input_lines(file), False
    name = file or STANDARD_INPUT
    batches = iter(lambda: list(itertools.islice(lines, batch_size)), [])
    answers = map_in_order(partial(answer_batch, answer, name), batches, processes)
    with contextlib.closing(answers):
        for records, fault in answers:
            show(records)
            if fault is not None:
                raise fault
            any_line = any_line or bool(records)
    if not any_line:
        raise UserError(f"{name}: holds no text; give one input a line")


def answer_batch(answer: Answer, name: str, lines: Sequence[Line]) -> tuple[list[str], UserError | None]:
    """Answer lines up to the first faulty one; return the records and the fault."""
    texts = [text for _, text in lines if isinstance(text, str)]
    if len(texts) == len(lines):
        with contextlib.suppress(UserError):
            return answer(texts), None
    records: list[str] = []
    for number, text in lines:
        if isinstance(text, UserError):
            return records, text
        try:
            records += answer([text])
        except UserError as error:
            message = f"{name}:{number}: {error}; the lines from this one on are not answered"
            return records, UserError(message)
    return records, None


def converse(answer: Answer) -> None:
    """Answer typed lines until the end of input; report a faulty line and continue."""
    for text in typed_lines("one line each; Ctrl-D ends"):
        try:
            if text is None:
                raise UserError("this line is not UTF-8; set the terminal to UTF-8")
            if text.strip():
                show(answer([checked_text(text)]))
        except UserError as error:
            note(f"error: {error}")


def input_lines(file: str | None) -> Iterator[Line]:
    """Iterate over the lines of a file (`.xz` and `.gz` too) or of standard input; skip blank ones.

    Where one cannot be read, the fault takes its place and is the last.
    """
    from paddle_dialog.data.files import read_lines

    number = 0
    try:
        for number, line in piped_lines() if file is None else read_lines(file):
            if line is None:
                raise UserError(f"{STANDARD_INPUT}:{number}: not UTF-8; convert the text first")
            if line.strip():
                yield number, line.strip()
    except UserError as error:
        yield number + 1, error


def make_parser() -> argparse.ArgumentParser:
    """Return the command line, to which the recipe's task adds its own arguments."""
    parser = base_parser(__doc__, TaskParser, config_required=False)
    parser.add_argument(
        "text",
        nargs="*",
        type=checked_text,
        help="inputs; without any, and without --input, they are asked for",
    )
    parser.add_argument("--input", metavar="FILE", help="one input a line; - reads standard input")
    parser.add_argument(
        "--workers",
        type=integer_from(1, 256),
        metavar="N",
        help="processes that answer the lines of an input (default: the cores)",
    )
    parser.add_argument("--n-best", type=integer_from(1), metavar="N", help="candidates for each input")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser
