"""Make a bundle that ships from the model of a run: smaller weights, no training state, a full model card.

python tools/export.py --weights runs/couplet/best --output pretrained/couplet --about card.md --metrics dev.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from paddle_dialog.command_line import notes_on_stderr, program_parser


def main(arguments: argparse.Namespace) -> None:
    """Write the bundle and print its size."""
    from paddle_dialog.bundle.export import export_bundle, export_merged
    from paddle_dialog.errors import UserError
    from paddle_dialog.recipes import find_model

    if arguments.merge is not None:
        of_bundles = (arguments.about, arguments.data, arguments.metrics)
        if any(of_bundles) or arguments.eight_bits or arguments.overwrite:
            raise UserError(
                "--merge: writes no bundle; leave --about, --data, --metrics, --eight-bits and --overwrite out"
            )
        with notes_on_stderr():
            size = export_merged(find_model(arguments.weights), Path(arguments.output), arguments.merge)
        print(f"{arguments.output}: {size / 1e6:.1f} MB")
        return
    about = _content(arguments.about) if arguments.about else ""
    try:
        metrics = json.loads(_content(arguments.metrics)) if arguments.metrics else None
    except json.JSONDecodeError as error:
        raise UserError(f"{arguments.metrics}: is not JSON (line {error.lineno}: {error.msg})") from error
    if metrics is not None and not isinstance(metrics, dict):
        raise UserError(f"{arguments.metrics}: is no JSON object; give what tools/evaluate.py --json prints")
    with notes_on_stderr():
        size = export_bundle(
            find_model(arguments.weights),
            Path(arguments.output),
            about,
            metrics,
            arguments.data,
            arguments.eight_bits,
            arguments.overwrite,
        )
    print(f"{arguments.output}: {size / 1e6:.1f} MB")


def _content(path: str) -> str:
    from paddle_dialog.data.files import read_lines

    return "".join(f"{line}\n" for _, line in read_lines(path))


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = program_parser(__doc__)
    parser.add_argument(
        "--weights", required=True, metavar="DIR", help="the model of a run, e.g. runs/couplet/best"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="the bundle to write")
    parser.add_argument(
        "--about", metavar="FILE", help="Markdown for the model card: data, licence, use, limits"
    )
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="SOURCE",
        help="what the task makes further files of, e.g. couplets for the index of the known ones; repeatable",
    )
    parser.add_argument(
        "--eight-bits", action="store_true", help="8 bits a number of the matrices instead of float16's 16"
    )
    parser.add_argument(
        "--merge",
        nargs="?",
        const="",
        metavar="BASE",
        help="instead of a bundle, write a fine-tuned pre-trained model as one folder that Transformers and "
        "PaddleFormers read; BASE is the folder of the frozen model, where it has been moved",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="write although --output holds the bundle of another model"
    )
    parser.add_argument("--metrics", metavar="FILE", help="what tools/evaluate.py --json printed")
    return parser
