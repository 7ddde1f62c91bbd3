"""What the commands that fit a judge have in common."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from paddle_dialog.bundle.folder import load_bundle, save_bundle
from paddle_dialog.command_line import base_parser
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.recipes import find_model


def judge_parser(purpose: str | None, ratings: str) -> argparse.ArgumentParser:
    """Return a command line with `--weights`, `--ratings` and `--output`.

    Args:
        purpose: docstring of the command.
        ratings: what stands in their file.
    """
    parser = base_parser(purpose)
    parser.add_argument("--weights", required=True, metavar="DIR", help="a bundle")
    parser.add_argument("--ratings", required=True, metavar="FILE", help=ratings)
    parser.add_argument("--output", required=True, metavar="DIR", help="the bundle to write")
    return parser


def save_with_judge(arguments: argparse.Namespace, judge: Judge) -> None:
    """Write the bundle of `--weights` with a judge to `--output`."""
    bundle = load_bundle(find_model(arguments.weights))
    files = {**bundle.extra, JUDGE: judge.to_bytes()}
    save_bundle(dataclasses.replace(bundle, extra=files), Path(arguments.output))
