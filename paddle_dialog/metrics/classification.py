"""Metrics of classifiers: confusion, F1 and calibration."""

from __future__ import annotations

import numpy as np

CALIBRATION_BINS = 15


def confusion_matrix(predicted: np.ndarray, gold: np.ndarray, classes: int) -> np.ndarray:
    """Count how often each class was taken for each other: int64 [K, K], true classes down.

    Args:
        predicted: classes [N].
        gold: true classes [N].
        classes: number K of them.
    """
    return np.bincount(gold * classes + predicted, minlength=classes**2).reshape(classes, classes)


def f1_score(confusion: np.ndarray) -> float:
    """Return the harmonic mean of precision and recall of class 1, 0 where neither has anything right."""
    right = int(confusion[1, 1])
    total = int(confusion[1].sum() + confusion[:, 1].sum())
    return 2 * right / total if total else 0.0


def calibration_error(probabilities: np.ndarray, gold: np.ndarray) -> float:
    """Return how far the probability of the likeliest class is from the share of examples where it is right.

    The expected calibration error of Guo et al. (2017), "On Calibration of Modern Neural Networks", equation 3: over
    `CALIBRATION_BINS` bins of equal width, ((m - 1) / M, m / M], the mean of |accuracy - mean confidence| weighted by
    the examples in each.

    Args:
        probabilities: of the classes of each example [N, K].
        gold: true classes [N].
    """
    if len(gold) == 0 or len(probabilities) != len(gold):
        raise ValueError(f"{len(probabilities)} examples have probabilities and {len(gold)} a class")
    confidence = probabilities.max(axis=1)  # [N]
    right = probabilities.argmax(axis=1) == gold  # [N]
    bins = np.maximum(np.ceil(confidence * CALIBRATION_BINS).astype(int) - 1, 0)  # [N]
    gaps = np.bincount(
        bins, weights=right - confidence, minlength=CALIBRATION_BINS
    )  # [M], times the bin's size
    return float(np.abs(gaps).sum() / len(gold))
