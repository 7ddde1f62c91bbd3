"""Measure how fast a recipe trains and answers on this machine.

python tools/benchmark.py -c configs/couplet_lstm.yaml -o data.train=couplets.tsv
"""

from __future__ import annotations

import argparse
import json
import sys

from paddle_dialog.benchmark import measure_decoding, measure_training
from paddle_dialog.command_line import base_parser, integer_from, load_model
from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from paddle_dialog.mkl import describe_path


def main(arguments: argparse.Namespace) -> None:
    """Print the training speed and, where there are weights, the decoding speed."""
    result: Record = {}
    if not arguments.decoding_only:
        from paddle_dialog.device import select_device
        from paddle_dialog.recipes import load_config

        task, config = load_config(arguments.config, arguments.override)
        device, path = select_device(arguments.device), describe_path()
        if device == "cpu" and path is not None:
            print(path, file=sys.stderr)
        result |= measure_training(task, config, arguments.steps, arguments.cpu_time)
    if arguments.weights is not None or arguments.decoding_only:
        recipe, model = load_model(arguments)
        source = arguments.data or recipe.data.dev
        if source is None:
            raise UserError("no data: name a file with --data, or set data.dev in the config")
        texts = model.task.example_inputs(model.config, source, 64)
        single = [text for text in texts if len(text) == arguments.length][:8] or texts[:1]
        result |= measure_decoding(model.predictor, single, texts, arguments.repeats)
    if arguments.json:
        print(json.dumps(result))
        return
    for section, values in result.items():
        for name, value in values.items():
            print(f"{section} {name:<24}{value:>12}")


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
        "--cpu-time",
        action="store_true",
        help="count the training's processor time, not the wall's, on a CPU busy with other work",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser
