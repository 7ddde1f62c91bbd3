"""Fitting of judges: the regression, and the parts of a command line that every judge needs."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from paddle_dialog.bundle.folder import load_bundle, save_bundle
from paddle_dialog.command_line import base_parser
from paddle_dialog.recipes import find_model

SCORE_SCALE = 3.0  # a score's weight is penalised a ninth of a state's


def fit_order(
    rows: np.ndarray, values: np.ndarray, inputs: np.ndarray, scores: int, penalty: float
) -> np.ndarray:
    """Return the weights [F] whose sum orders the texts of one input as their values do.

    Ridge regression (Hoerl and Kennard 1970) of what a value has more than the mean of its input on the same of the
    features, each divided by its deviation first. Scores are regularised less than states.

    Args:
        rows: features [N, F].
        values: of the N texts.
        inputs: number of the input that each text answers [N].
        scores: how many of the features are scores; they come first.
        penalty: of the squared weights.
    """
    sizes: np.ndarray = rows.std(axis=0)
    sizes[sizes == 0] = 1.0  # a feature that never varies gets no weight
    sizes[:scores] /= SCORE_SCALE
    _, inputs = np.unique(inputs, return_inverse=True)
    centred = _centred(rows / sizes, inputs)  # [N, F]
    goals = _centred(values[:, None], inputs)[:, 0]  # [N]
    squares = centred.T @ centred + penalty * np.eye(len(sizes))  # [F, F]
    weights: np.ndarray = np.linalg.solve(squares, centred.T @ goals)
    return weights / sizes


def _centred(rows: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Subtract from rows [N, F] the mean of their input."""
    sums = np.zeros((inputs.max(initial=0) + 1, rows.shape[1]))
    np.add.at(sums, inputs, rows)
    centred: np.ndarray = rows - (sums / np.bincount(inputs)[:, None])[inputs]
    return centred


def judge_parser(purpose: str | None, ratings: str) -> argparse.ArgumentParser:
    """Return a command line with `--weights`, `--ratings` and `--output`.

    Args:
        ratings: what is in their file.
    """
    parser = base_parser(purpose)
    parser.add_argument("--weights", required=True, metavar="DIR", help="a bundle")
    parser.add_argument("--ratings", required=True, metavar="FILE", help=ratings)
    parser.add_argument("--output", required=True, metavar="DIR", help="the bundle to write")
    parser.set_defaults(paddle=False)
    return parser


def save_with(arguments: argparse.Namespace, files: Mapping[str, bytes]) -> None:
    """Write the bundle of `--weights` with files, a judge among them, to `--output`."""
    bundle = load_bundle(find_model(arguments.weights))
    save_bundle(dataclasses.replace(bundle, extra={**bundle.extra, **files}), Path(arguments.output))
