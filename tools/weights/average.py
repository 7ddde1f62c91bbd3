"""Average the weights of two models of one shape, and write the bundle.

python tools/weights/average.py RUN/best LATER/best --share 0.35 --output DIR

Models that come from one another by further training lie in one valley, and a point between them is often lower than
both (Wortsman et al. 2022, "Model Soups", section 3). Everything else in the bundle is the first one's; what was made
with its weights (a judge, an index) has to be made anew.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np

from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.command_line import run_tool
from paddle_dialog.errors import UserError


def averaged(first: Bundle, second: Bundle, share: float) -> Bundle:
    """Return the first bundle with (1 - share) of its weights and `share` of the second's."""
    if not 0 <= share <= 1:
        raise UserError(f"--share: is {share}; give a number from 0 to 1")
    shapes = [{name: array.shape for name, array in one.weights.items()} for one in (first, second)]
    words = [{name: one.tokens for name, one in bundle.vocabularies.items()} for bundle in (first, second)]
    if first.task != second.task or shapes[0] != shapes[1] or words[0] != words[1]:
        raise UserError(
            "the two models differ in their task, vocabulary or shape; average runs that began from one another"
        )
    weights = {
        name: (1 - share) * array.astype(np.float32) + share * second.weights[name].astype(np.float32)
        for name, array in first.weights.items()
    }
    return dataclasses.replace(first, weights=weights)


def main(arguments: argparse.Namespace) -> None:
    """Average and write."""
    first, second = (load_bundle(Path(path)) for path in (arguments.first, arguments.second))
    save_bundle(averaged(first, second, arguments.share), Path(arguments.output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", metavar="BUNDLE", help="a model")
    parser.add_argument("second", metavar="BUNDLE", help="one trained further from it")
    parser.add_argument("--share", type=float, default=0.5, help="of the second one, 0 to 1")
    parser.add_argument("--output", required=True, metavar="DIR", help="the bundle to write")
    sys.exit(run_tool(main, parser))
