"""Fit the n-gram classifier of a model's emotions anew, and write the bundle with it.

python -m tasks.empathetic.fitting.refitting -c CONFIG --weights BUNDLE --output DIR -o data.train=FILE

The network stays as it is. `-o emotion.taught=FILE` adds texts with the probabilities that another classifier gives
their emotions (docs/empathetic.md).
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from paddle_dialog.bundle.folder import load_bundle, save_bundle
from paddle_dialog.command_line import base_parser, run_tool
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config
from paddle_dialog.shipped import find_model
from tasks.empathetic.config import EmpatheticConfig


def main(arguments: argparse.Namespace) -> None:
    """Fit the classifier and write the bundle."""
    task, config = load_config(arguments.config, arguments.override)
    if not isinstance(config, EmpatheticConfig):
        raise UserError(f"{arguments.config}: is of another task; name an empathetic config")
    bundle = load_bundle(find_model(arguments.weights))
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, dev=None))
    fitted = task.fitted_weights(config, task.prepare_data_like(config, bundle))
    known = bundle.weights
    if not fitted or any(name not in known or known[name].shape != new.shape for name, new in fitted.items()):
        raise UserError(
            f"{arguments.weights}: has no n-gram classifier of {config.emotion.ngram_buckets:,} buckets, which "
            f"{arguments.config} wants; take the recipe of these weights"
        )
    weights = {name: fitted.get(name, values).astype(values.dtype) for name, values in known.items()}
    save_bundle(dataclasses.replace(bundle, weights=weights), Path(arguments.output))


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__)
    parser.add_argument("--weights", required=True, metavar="DIR", help="a bundle")
    parser.add_argument("--output", required=True, metavar="DIR", help="the bundle to write")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
