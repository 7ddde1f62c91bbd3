"""Measure how fast a trained model answers on this machine, or whether answers keep to their budget.

python tools/benchmark.py -c configs/couplet.yaml
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from statistics import median

from paddle_dialog.command_line import base_parser, integer_from, load_model
from paddle_dialog.config.loader import read_config
from paddle_dialog.config.typed import build
from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import Predictor
from paddle_dialog.recipes import find_recipe

BUDGET = "budget"  # in configs/
EXCEEDED = 1  # exit status
INPUTS, ALONE = 64, 8  # timed together, and one by one


def main(arguments: argparse.Namespace) -> int | None:
    """Print the decoding speed, or the budget."""
    if arguments.budget:
        return show_budget(arguments)
    if arguments.config is None and arguments.weights is None:
        raise UserError("no recipe: name one with -c, or take --budget")
    recipe, model = load_model(arguments)
    source = arguments.data or recipe.data.dev
    if source is None:
        raise UserError("no data: name a file with --data, or set data.dev in the config")
    texts = model.task.example_inputs(model.config, source, INPUTS)
    speed = measure_decoding(model.predictor, texts[:ALONE], texts, arguments.repeats)
    if arguments.json:
        print(json.dumps({"decoding": speed}))
        return None
    for name, value in speed.items():
        print(f"decoding {name:<24}{value:>12}")
    return None


def measure_decoding(
    predictor: Predictor, single: Sequence[str], batch: Sequence[str], repeats: int
) -> Record:
    """Time one input alone and many at once, text to text.

    Args:
        predictor: a trained model with its decoding settings.
        single: inputs answered one by one; the median over all of them and all repeats counts.
        batch: inputs answered in one call.
        repeats: how often.

    Returns:
        `milliseconds_one` and `inputs_per_second`.
    """

    def seconds(texts: Sequence[str]) -> float:
        began = time.perf_counter()
        list(predictor.predict_records(texts))
        return time.perf_counter() - began

    for texts in (single, batch):  # warms up the caches
        seconds(texts)
    alone = [seconds([text]) for _ in range(repeats) for text in single]
    together = [seconds(batch) for _ in range(repeats)]
    return {
        "milliseconds_one": round(1000 * median(alone), 2),
        "inputs_per_second": round(len(batch) / median(together), 2),
    }


def show_budget(arguments: argparse.Namespace) -> int | None:
    """Print what each kind of answer takes and its limit; return a status where a limit is exceeded."""
    from paddle_dialog.budget import BudgetConfig, measure_budget

    path = arguments.config or BUDGET
    budget, exceeded = build(BudgetConfig, read_config(find_recipe(path), arguments.override), path), False
    for name, milliseconds, ratio in measure_budget(budget):
        limit = budget.answers[name].limit
        over = ratio is not None and ratio > limit
        exceeded = exceeded or over
        of = "" if ratio is None else f"{ratio:8.2f} of {limit:g}{'  EXCEEDED' if over else ''}"
        print(f"{milliseconds:8.1f} ms{of}  {name}")
    return EXCEEDED if exceeded else None


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__, config_required=False)
    parser.needs_model = False  # a budget names its own
    parser.add_argument(
        "--budget",
        action="store_true",
        help="time kinds of answers in turns and exit with status 1 where one exceeds its limit; -c may name another "
        f"budget than {BUDGET}",
    )
    parser.add_argument("--data", metavar="FILE", help="what to answer (default: the config's data.dev)")
    parser.add_argument(
        "--repeats", type=integer_from(1), default=5, metavar="N", help="rounds of decoding (5)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser
