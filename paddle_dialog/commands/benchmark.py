"""Measure how fast a model answers on this machine, or whether answers keep to their budget.

python tools/benchmark.py --budget
"""

from __future__ import annotations

import argparse
import dataclasses
import json

from paddle_dialog.benchmark import measure_decoding
from paddle_dialog.command_line import base_parser, integer_from, load_model
from paddle_dialog.errors import UserError

BUDGET = "budget"  # in configs/
EXCEEDED = 1  # exit status


def main(arguments: argparse.Namespace) -> int | None:
    """Print the speed of answers, or the budget."""
    if arguments.budget:
        return show_budget(arguments)
    if arguments.config is None and arguments.weights is None:
        raise UserError("no recipe: name one with -c, or take --budget")
    recipe, model = load_model(arguments)
    source = arguments.data or recipe.data.dev
    if source is None:
        raise UserError("no data: name a file with --data, or set data.dev in the config")
    texts = model.task.example_inputs(model.config, source, 64)
    single = [text for text in texts if len(text) == arguments.length][:8] or texts[:1]
    result = measure_decoding(model.predictor, single, texts, arguments.repeats)
    if arguments.json:
        print(json.dumps(result))
        return None
    for section, values in result.items():
        for name, value in values.items():
            print(f"{section} {name:<24}{value:>12}")
    return None


def show_budget(arguments: argparse.Namespace) -> int | None:
    """Print what each kind of answer takes beside its limit; return a status where a limit is exceeded."""
    from paddle_dialog.budget import measure_budget, read_budget

    spent = measure_budget(read_budget(arguments.config or BUDGET, arguments.override))
    if arguments.json:
        print(json.dumps({name: dataclasses.asdict(one) for name, one in spent.items()}, ensure_ascii=False))
    else:
        for name, one in spent.items():
            print(f"{one}  {name}")
    return EXCEEDED if any(one.exceeded for one in spent.values()) else None


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__, config_required=False)
    parser.needs_model = False  # a budget names its own
    parser.add_argument(
        "--budget",
        action="store_true",
        help="time answers beside each other and exit with status 1 where one exceeds its limit; -c may name another "
        f"budget than {BUDGET}",
    )
    parser.add_argument("--data", metavar="FILE", help="what to answer (default: the config's data.dev)")
    parser.add_argument(
        "--length", type=integer_from(1), default=7, metavar="N", help="of lines timed alone (7)"
    )
    parser.add_argument(
        "--repeats", type=integer_from(1), default=5, metavar="N", help="rounds of decoding (5)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser
