"""Measure a trained model.

python tools/evaluate.py -c configs/couplet_lstm.yaml --data dev.tsv --json --figures figures
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from paddle_dialog.command_line import base_parser, load_named_model, note, notes_on_stderr
from paddle_dialog.config.loader import flat
from paddle_dialog.errors import UserError
from paddle_dialog.figures import FigureFolder


def main(arguments: argparse.Namespace) -> None:
    """Print all metrics of the task on one file."""
    config, model = load_named_model(arguments)
    source = arguments.data or config.data.dev
    if source is None:
        raise UserError("no data: name a file with --data, or set data.dev in the config")
    predictions = Path(arguments.predictions) if arguments.predictions else None
    if predictions is not None and same_file(predictions, source):
        raise UserError(f"{source}: --predictions would overwrite the data; name another file")
    if arguments.figures:
        figures = FigureFolder(Path(arguments.figures))
        model.task.draw_figures(model.predictor, source, figures)
        figures.close()
        note(f"figures: {', '.join(map(str, figures.written))}")
    with notes_on_stderr():
        result = model.measure(source, predictions, not arguments.no_answers)
    if arguments.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        for name, value in flat(result):
            print(f"{name:<28}{value:.4f}" if isinstance(value, float) else f"{name:<28}{value}")


def same_file(path: Path, source: str) -> bool:
    """Return whether a data source, which may be no path at all, is this file."""
    try:
        return path.samefile(source)
    except (OSError, ValueError):
        return False


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__, config_required=False)
    parser.add_argument("--data", metavar="FILE", help="the examples; by default the config's data.dev")
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument(
        "--predictions", metavar="FILE", help="write every hypothesis there, one JSON object a line"
    )
    answers.add_argument(
        "--no-answers",
        action="store_true",
        help="only what needs no answer written, which takes most of the time: perplexity, accuracy of the emotion",
    )
    parser.add_argument(
        "--figures",
        metavar="DIR",
        help="draw the model at work there, as PNG files and for VisualDL in DIR/vdl",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser
