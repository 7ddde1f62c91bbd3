"""Talk with a trained empathetic model.

python tools/chat.py -c configs/empathetic.yaml
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.command_line import base_parser, load_model, typed_lines
from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle_dialog.tasks.empathetic.chat import Chat

NOT_UTF8 = "this line is not UTF-8; set the terminal to UTF-8, or convert the text first"


def main(arguments: argparse.Namespace) -> None:
    """Answer turn by turn until `/quit` or the end of input."""
    predictor = load_model(arguments)[1].predictor
    # Imported late, so that `--help` and a faulty config need not wait for it.
    from paddle_dialog.tasks.empathetic.chat import Chat
    from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor

    if not isinstance(predictor, EmpatheticPredictor):
        raise UserError(
            "a chat needs a model of dialogues; name an empathetic config, e.g. configs/empathetic.yaml"
        )
    chat = Chat(predictor, Path(arguments.history) if arguments.history else None)
    try:
        talk(
            chat,
            typed_lines("say something; /help lists the commands, Ctrl-D ends")
            if sys.stdin.isatty()
            else piped_lines(),
        )
    finally:
        chat.end()


def talk(chat: Chat, lines: Iterator[str | None]) -> None:
    """Print what the chat makes of each line: replies to stdout, everything else to stderr."""
    for line in lines:
        try:
            if line is None:
                raise UserError(NOT_UTF8)
            response = chat.handle(line)
        except UserError as error:  # report it and go on
            print(f"error: {error}", file=sys.stderr)
            continue
        if response.note is not None:
            print(response.note, file=sys.stderr)
        if response.reply is not None:
            print(response.reply, flush=True)
        if chat.finished:
            return


def piped_lines() -> Iterator[str | None]:
    """Iterate over the lines of standard input as UTF-8, whatever the locale; None for one that is not."""
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            yield None


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__, config_required=False)
    parser.add_argument(
        "--history", metavar="FILE", help="add each conversation to this file when it ends, as a line of JSON"
    )
    return parser
