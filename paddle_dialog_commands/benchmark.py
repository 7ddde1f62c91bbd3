"""Measure how fast a recipe trains and answers on this machine.

python tools/benchmark.py -c configs/couplet_lstm.yaml -o data.train=couplets.tsv --against book
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING

from paddle_dialog.command_line import base_parser, integer_from, load_model
from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from paddle_dialog.mkl import describe_path

if TYPE_CHECKING:
    from paddle_dialog.bundle.loading import LoadedModel
    from paddle_dialog.predictor import Predictor

ENGINES = {"decoding": "fast", "reference": "reference"}


def main(arguments: argparse.Namespace) -> None:
    """Print the training speed and, where there are weights, the decoding speed."""
    from paddle_dialog.device import select_device
    from paddle_dialog.recipes import load_config

    result: Record = {}
    if arguments.decoding_only and arguments.against not in (None, "reference"):
        raise UserError(f"--against {arguments.against} is about training, which --decoding-only leaves out")
    if not arguments.decoding_only:
        from paddle_dialog.benchmark.training import measure_training
        from paddle_dialog.training.allocator import keep_freed_memory

        keep_freed_memory()
        task, config = load_config(arguments.config, arguments.override)
        device, path = select_device(arguments.device), describe_path()
        if device == "cpu" and path is not None:
            print(path, file=sys.stderr)
        rival = None if arguments.against == "reference" else arguments.against
        result.update(measure_training(task, config, arguments.steps, rival, arguments.cpu_time))
        if "limit" not in result:
            print("limit: the products of this model are not counted", file=sys.stderr)
    if arguments.weights is not None or arguments.decoding_only:
        from paddle_dialog.benchmark.decoding import measure_decoding

        recipe, model = load_model(arguments)
        source = arguments.data or recipe.data.dev
        if source is None:
            raise UserError("no data: name a file with --data, or set data.dev in the config")
        predictors = {"decoding": model.predictor}
        if arguments.against == "reference":
            predictors = {name: _with_engine(model, engine) for name, engine in ENGINES.items()}
        texts = model.task.example_inputs(model.config, source, 64)
        single = [text for text in texts if len(text) == arguments.length][:8] or texts[:1]
        result.update(measure_decoding(predictors, single, texts, arguments.repeats))
    if arguments.json:
        print(json.dumps(result))
        return
    for section, values in result.items():
        for name, value in values.items() if isinstance(values, dict) else [("", values)]:
            print(f"{section} {name:<24}{value:>12}")


def _with_engine(model: LoadedModel, engine: str) -> Predictor:
    """Return a predictor of the same weights with another engine.

    Raises:
        UserError: the task knows no reference decoder.
    """
    from paddle_dialog.config.loader import replaced
    from paddle_dialog.predictor import GenerationPredictor

    if not (isinstance(model.predictor, GenerationPredictor) and model.predictor.has_reference):
        raise UserError(
            f"--against reference: Paddle's beam search does not decode the task '{model.task.name}'; leave it out"
        )
    config = replaced(model.config, {"decoding.engine": engine})
    return dataclasses.replace(model, config=config).predictor


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__)
    parser.add_argument(
        "--steps", type=integer_from(1), default=20, metavar="N", help="timed training steps (20)"
    )
    parser.add_argument("--weights", metavar="DIR", help="a bundle: also time decoding with it")
    parser.add_argument("--decoding-only", action="store_true", help="leave training out")
    parser.add_argument("--data", metavar="FILE", help="what to answer (default: the config's data.dev)")
    parser.add_argument(
        "--length", type=integer_from(1), default=7, metavar="N", help="of lines timed alone (7)"
    )
    parser.add_argument(
        "--repeats", type=integer_from(1), default=5, metavar="N", help="rounds of decoding (5)"
    )
    parser.add_argument(
        "--against",
        metavar="NAME",
        help="transformer: train the recipe's network from Paddle's own layers too, on the same batches; a yardstick "
        "of the task's own, e.g. book, the textbook's couplet model; reference: decode with Paddle's beam search too",
    )
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="count the training's processor time, not the wall's, on a CPU busy with other work",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser
