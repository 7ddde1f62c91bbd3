"""Measure how fast a trained model answers on this machine, or whether answers keep to their budget.

python tools/benchmark.py -c configs/couplet.yaml
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from paddle_dialog.command_line import base_parser, integer_from, load_named_model
from paddle_dialog.config.loader import read_config
from paddle_dialog.config.typed import Problem, at_least, build, setting
from paddle_dialog.data.files import Record
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import Predictor
from paddle_dialog.recipes import find_recipe, load_answering, named_recipe

BUDGET = "budget"  # in configs/
EXCEEDED = 1  # exit status
INPUTS, ALONE = 64, 8  # timed together, and one by one


@dataclass(frozen=True)
class AnswerKind:
    """Answers of one kind, and what they may take."""

    config: str = setting(dataclasses.MISSING, "the recipe, or the folder of a run or a bundle")
    texts: list[str] = setting(dataclasses.MISSING, "what is answered in turns")  # noqa: RUF009
    override: list[str] = field(default_factory=list)
    n_best: int | None = setting(None, "candidates for each text", minimum=1)
    baseline: str | None = setting(None, "the kind whose time this one's is divided by")
    limit: float = setting(1.0, "greatest ratio of the two times", above=0.0)


@dataclass(frozen=True)
class BudgetConfig:
    """A budget."""

    answers: dict[str, AnswerKind] = setting(dataclasses.MISSING, "the kinds by name")  # noqa: RUF009
    rounds: int = at_least(1, 20, "answers of each kind; their median counts")

    def problems(self) -> Iterator[Problem]:
        for name, kind in self.answers.items():
            if not kind.texts:
                yield f"answers.{name}.texts", "is empty; name what is answered"
            if kind.baseline is not None and kind.baseline not in self.answers:
                yield f"answers.{name}.baseline", f"'{kind.baseline}' is none of {', '.join(self.answers)}"


def main(arguments: argparse.Namespace) -> int | None:
    """Print the decoding speed, or the budget."""
    if arguments.budget:
        return show_budget(arguments.config or BUDGET, arguments.override)
    config, model = load_named_model(arguments)
    source = arguments.data or config.data.dev
    if source is None:
        raise UserError("no data: name a file with --data, or set data.dev in the config")
    texts = model.task.example_inputs(model.config, source, INPUTS)
    speed = measure_decoding(model.predictor, texts, arguments.repeats)
    if arguments.json:
        print(json.dumps({"decoding": speed}))
        return None
    for name, value in speed.items():
        print(f"decoding {name:<24}{value:>12}")
    return None


def measure_decoding(predictor: Predictor, texts: Sequence[str], repeats: int) -> Record:
    """Return the median time of one input alone, and how many are answered in a second when all are given."""

    def seconds(texts: Sequence[str]) -> float:
        began = time.perf_counter()
        list(predictor.predict_records(texts))
        return time.perf_counter() - began

    single = texts[:ALONE]
    for warming_up in (single, texts):
        seconds(warming_up)
    alone = [seconds([text]) for _ in range(repeats) for text in single]
    together = [seconds(texts) for _ in range(repeats)]
    return {
        "milliseconds_one": round(1000 * median(alone), 2),
        "inputs_per_second": round(len(texts) / median(together), 2),
    }


def show_budget(path: str, overrides: Sequence[str]) -> int | None:
    """Print what each kind of answer takes and its limit; return a status where a limit is exceeded."""
    budget = build(BudgetConfig, read_config(find_recipe(path), overrides), path)
    kinds, exceeded = budget.answers, False
    predictors = {
        name: load_answering(named_recipe(kind.config, None, kind.override)).predictor
        for name, kind in kinds.items()
    }
    rounds = range(-1, budget.rounds)  # the first one warms up the caches
    measured = [{name: _processor_time(predictors[name], kinds[name], n) for name in kinds} for n in rounds]
    for name, kind in kinds.items():
        line = f"{median(times[name] for times in measured[1:]):8.1f} ms"
        if kind.baseline is not None:
            ratio = median(times[name] / times[kind.baseline] for times in measured[1:])
            line += f"{ratio:8.2f} of {kind.limit:g}{'  EXCEEDED' if ratio > kind.limit else ''}"
            exceeded = exceeded or ratio > kind.limit
        print(f"{line}  {name}")
    return EXCEEDED if exceeded else None


def _processor_time(predictor: Any, kind: AnswerKind, number: int) -> float:
    """Return the processor time in ms of a round's answer."""
    options = {} if kind.n_best is None else {"n_best": kind.n_best}
    began = time.process_time()
    list(predictor.predict_records([kind.texts[number % len(kind.texts)]], **options))
    return 1000 * (time.process_time() - began)


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__, config_required=False)
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
