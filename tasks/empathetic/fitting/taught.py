"""Texts with the probabilities that another classifier gives their emotions, and the fit of n-grams to them.

Knowledge distillation (Hinton, Vinyals and Dean 2015, "Distilling the Knowledge in a Neural Network", section 2): a
large classifier that has read more than the annotated conversations teaches the linear one, which answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from paddle_dialog.data.records import Record, read_records
from tasks.empathetic.data.dialogue import clean_turn
from tasks.empathetic.emotion.labels import emotion_id

SMOOTHING = 0.05  # of an annotated emotion's probability, which all share (Szegedy et al. 2016, section 7)
PENALTY = 3e-6  # of the squared weights beside the mean loss
STEPS = 60  # of the optimiser; more fit the training texts alone
_ABOVE_ONE = 1.001  # a sum of probabilities that rounding does not explain


class Taught(NamedTuple):
    """A context and the probabilities of its emotions [C]."""

    context: list[str]
    emotions: np.ndarray


def read_taught(path: str, emotions: Sequence[str]) -> Iterator[Taught]:
    """Iterate over the lines `{"context": [turn, …], "emotions": {"sad": 0.6, …}}` of a file.

    Args:
        path: of the file. Emotions that a line leaves out share what is left of 1.
        emotions: all that there are.

    Raises:
        UserError: the file cannot be read, or a line is not as it should be.
    """

    def taught(record: Record) -> Taught:
        context = [clean_turn(turn, "a turn") for turn in record["context"]]
        given = {emotion_id(name, emotions): float(share) for name, share in record["emotions"].items()}
        are_shares = all(share >= 0 for share in given.values()) and sum(given.values()) <= _ABOVE_ONE
        if not context or not are_shares:  # NaN is none either
            raise ValueError("no turn, or probabilities that are negative or more than 1 together")
        shares = np.full(len(emotions), (1 - sum(given.values())) / max(len(emotions) - len(given), 1))
        shares[list(given)] = list(given.values())
        return Taught(context, np.maximum(shares, 0).astype(np.float32))

    return read_records(path, taught, '{"context": [turn, …], "emotions": {"sad": 0.6, …}}')


def smoothed(labels: np.ndarray, classes: int) -> np.ndarray:
    """Return annotated emotions [N] as probabilities [N, C]."""
    return (1 - SMOOTHING) * np.eye(classes, dtype=np.float32)[labels] + np.float32(SMOOTHING / classes)


def fit_to_probabilities(features: csr_matrix, emotions: np.ndarray) -> np.ndarray:
    """Fit a linear map [buckets, C] whose softmax gives probabilities of emotions.

    It has nearly the least mean cross-entropy with a penalty on its squares, by L-BFGS (Liu and Nocedal 1989).

    Args:
        features: unit vectors [N, buckets].
        emotions: probabilities [N, C].
    """
    shape = (features.shape[1], emotions.shape[1])
    transposed = features.T.tocsr()

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        table = flat.reshape(shape).astype(np.float32)
        logs = log_softmax(features @ table, axis=1)  # [N, C]
        gradient = transposed @ ((np.exp(logs) - emotions) / np.float32(len(emotions))) + PENALTY * table
        value = -(emotions * logs).sum(dtype=np.float64) / len(emotions) + PENALTY / 2 * float(flat @ flat)
        return value, gradient.astype(np.float64).ravel()

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    table: np.ndarray = found.x.reshape(shape).astype(np.float32)
    return table
