"""What all command-line tools share: their common arguments, and errors as plain lines with exit statuses."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable

from paddle_dialog.errors import UserError

DONE, INTERNAL_ERROR, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def base_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with ``-c``, ``-o`` and ``--device``.

    Args:
        description: first the purpose, then an example: ``Train a model: python tools/train.py -c …``.
    """
    purpose, _, example = (description or "").partition(": ")
    parser = argparse.ArgumentParser(description=f"{purpose}.", epilog=f"example: {example}")
    parser.add_argument("-c", "--config", required=True, help="the recipe, a YAML file such as configs/couplet.yaml")
    parser.add_argument(
        "-o",
        "--override",
        action="append",
        default=[],
        metavar="section.key=value",
        help="overrides a setting of the recipe; may be given again",
    )
    parser.add_argument("--device", default="auto", help="auto (default), cpu, gpu or gpu:N")
    return parser


def run_tool(main: Callable[[argparse.Namespace], int | None], parser: argparse.ArgumentParser) -> int:
    """Parses the command line, runs a tool, and turns what went wrong into its exit status.

    Returns:
        0 done, 2 bad input (one plain line on stderr), 130 interrupted, 1 internal error (with traceback).
    """
    arguments = parser.parse_args()
    try:
        return main(arguments) or DONE
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception:
        traceback.print_exc()
        print("error: this is a fault of paddle_dialog; please report it with the lines above", file=sys.stderr)
        return INTERNAL_ERROR
