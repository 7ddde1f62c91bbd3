"""A linear judge of what a model writes: reads the decoder's states over a text, fitted to blind ratings."""

from __future__ import annotations

import logging

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.task_files import reading
from paddle_dialog.errors import UserError

logger = logging.getLogger("paddle_dialog")

JUDGE = "judge.safetensors"  # in a bundle
_WEIGHTS = "weights"
SPARING = 3.0  # a score's weight costs a ninth of a state's


class Judge:
    """Values texts by the decoder's mean output over them.

    Args:
        weights: float32 [D].
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights.astype(np.float32)

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Return the values [N] of states [N, D]."""
        values: np.ndarray = states @ self.weights
        return values

    def to_bytes(self) -> bytes:
        """Return the file of a bundle."""
        return save({_WEIGHTS: self.weights})

    @classmethod
    def from_bytes(cls, content: bytes, width: int, where: str = JUDGE) -> Judge:
        """Read what `to_bytes` made.

        Args:
            content: of the file.
            width: D of the model that it judges.
            where: the file, for messages.

        Raises:
            UserError: the content is something else, or of another width.
        """
        with reading(where, "judge", "fit it anew"):
            weights = load(content)[_WEIGHTS]
        if weights.shape != (width,):
            raise UserError(
                f"{where}: reads {weights.size} numbers of a text, and this model has {width}; fit it anew"
            )
        return cls(weights)


def judge_of_bundle(content: bytes | None, width: int, weight: float) -> Judge | None:
    """Return the judge that a config gives a weight.

    Args:
        content: of the bundle's `JUDGE`; None where it has none, which is told in the log if the weight is not 0.
        width: D that its model's states have.
        weight: of the judge in the sum that orders the candidates.

    Raises:
        UserError: the file is no judge of this model.
    """
    if not weight:
        return None
    if content is None:
        logger.info("these weights have no judge (%s): candidates are ordered without one", JUDGE)
        return None
    return Judge.from_bytes(content, width)


def fit_order(
    rows: np.ndarray, values: np.ndarray, inputs: np.ndarray, scores: int, penalty: float
) -> np.ndarray:
    """Return the weights [F] whose sum orders the texts of one input as their values do.

    Ridge regression (Hoerl and Kennard 1970) of what a value has more than the mean of its input on the same of the
    features, each divided by its deviation first; the penalty spares the scores, which are few beside the states.

    Args:
        rows: features [N, F].
        values: of the N texts.
        inputs: number of the input that each text answers [N].
        scores: how many of the features are scores; they come first.
        penalty: of the squared weights.
    """
    _, inputs = np.unique(inputs, return_inverse=True)
    sizes = rows.std(axis=0)
    sizes[sizes == 0] = 1.0  # a feature that never varies gets no weight
    sizes[:scores] /= SPARING
    scaled, goals = _centred(rows / sizes, inputs), _centred(values[:, None], inputs)[:, 0]
    square = scaled.T @ scaled + penalty * np.eye(rows.shape[1])
    weights: np.ndarray = np.linalg.solve(square, scaled.T @ goals) / sizes
    return weights


def _centred(rows: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    sums = np.zeros((inputs.max(initial=0) + 1, rows.shape[1]))
    np.add.at(sums, inputs, rows)
    centred: np.ndarray = rows - (sums / np.bincount(inputs)[:, None])[inputs]
    return centred
