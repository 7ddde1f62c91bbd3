"""Add a reward model to the weights that it was trained on from, and write the bundle with it.

python -m tasks.couplet.preferences.reward_adding --weights BUNDLE --reward FOLDER --output DIR
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from paddle_dialog.bundle.folder import load_bundle, save_bundle
from paddle_dialog.bundle.low_rank import change_to_bytes
from paddle_dialog.command_line import run_tool
from paddle_dialog.errors import UserError
from paddle_dialog.shipped import find_model
from tasks.couplet.reward import REWARD


def main(arguments: argparse.Namespace) -> None:
    """Write the bundle."""
    if arguments.rank < 1:
        raise UserError(f"--rank: {arguments.rank} keeps nothing; give 1 or more, e.g. 8")
    bundle, reward = load_bundle(find_model(arguments.weights)), load_bundle(find_model(arguments.reward))
    for where, each in ((arguments.weights, bundle), (arguments.reward, reward)):
        if each.task != "couplet":
            raise UserError(f"{where}: is a bundle of the task '{each.task}'; a reward model is of couplets")
    try:
        content = change_to_bytes(bundle.weights, reward.weights, arguments.rank)
    except ValueError as error:
        raise UserError(f"{arguments.reward}: {error}; train it from {arguments.weights}") from error
    save_bundle(dataclasses.replace(bundle, extra={**bundle.extra, REWARD: content}), Path(arguments.output))


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", required=True, metavar="DIR", help="the bundle that answers")
    parser.add_argument(
        "--reward", required=True, metavar="DIR", help="`last` of a run of couplet_reward.yaml"
    )
    parser.add_argument("--rank", type=int, default=8, help="of the change that is kept (default: 8)")
    parser.add_argument("--output", required=True, metavar="DIR", help="the bundle to write")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
