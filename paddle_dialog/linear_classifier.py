"""Linear classifiers of sparse features such as hashed n-grams: fitted once by LIBLINEAR, answered by a table.

A network's training has nothing to add to them: they are convex problems, solved in minutes. Fitting needs
scikit-learn; answering looks rows up in the table that `fit_classifier` returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix, diags_array
from scipy.special import log_softmax


@dataclass(frozen=True)
class LinearSettings:
    """How a classifier is fitted."""

    # C of LIBLINEAR (Fan et al. 2008, "LIBLINEAR", section 2), the inverse strength of regularisation.
    penalty: float
    # Of the support vector machine or of the logistic regression.
    loss: Literal["squared_hinge", "log"] = "squared_hinge"
    # Features are scaled by |log-count ratio| to this power (Wang and Manning 2012, "Baselines and Bigrams",
    # section 2.3, where it is 1); 0 leaves them as they are.
    ratio_power: float = 1.0
    scales: tuple[float, float] = (0.1, 50.0)  # range of the factor that turns margins into logits


def sparse_rows(buckets: Sequence[np.ndarray], weights: Sequence[np.ndarray], size: int) -> csr_matrix:
    """Return features [N, size] of N texts: the buckets that each has and their weights; equal buckets add up."""
    starts = np.cumsum([0, *map(len, buckets)])
    return csr_matrix((np.concatenate(weights), np.concatenate(buckets), starts), shape=(len(buckets), size))


def unit_vectors(features: csr_matrix, weights: np.ndarray) -> csr_matrix:
    """Multiply features [N, F] by weights [F] and scale each row to unit length, in place."""
    features.sort_indices()
    features.data *= weights[features.indices]
    squares = np.asarray(features.multiply(features).sum(axis=1)).ravel()  # [N]
    features.data /= np.repeat(np.sqrt(squares), np.diff(features.indptr))
    return features


def fit_classifier(
    features: csr_matrix, labels: np.ndarray, held_out: np.ndarray, classes: int, settings: LinearSettings
) -> np.ndarray:
    """Fit a linear classifier, each label against all others.

    One scale turns the margins into logits: the most likely one on the texts that a separate fit does not see (as the
    temperature of Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2).

    Args:
        features: [N, F].
        labels: [N].
        held_out: bool [N], the texts that the scale is fitted to.
        classes: number of labels.
        settings: see `LinearSettings`.

    Returns:
        Weights float32 [F, classes] whose softmax gives probabilities. A label without a text is less likely than any
        other.
    """
    present = np.unique(labels)
    scale = _held_out_scale(features, labels, held_out, classes, settings)
    table = np.float32(scale) * fit_margins(features, labels, classes, settings)
    table[:, np.setdiff1d(np.arange(classes), present)] = table[:, present].min()
    return table


def fit_margins(
    features: csr_matrix, labels: np.ndarray, classes: int, settings: LinearSettings
) -> np.ndarray:
    """Fit one machine a label; weights float32 [F, classes], 0 for labels that have no text."""
    table = np.zeros((features.shape[1], classes), dtype=np.float32)
    factors = _factors(features, labels, classes, settings.ratio_power)  # [F, classes]
    for label in np.unique(labels):
        factor = factors[:, label]  # [F]
        machine = fit_machine(features @ diags_array(factor), labels == label, settings)
        table[:, label] = machine * factor
    return table


def fit_machine(
    features: csr_matrix, is_label: np.ndarray, settings: LinearSettings, weights: np.ndarray | None = None
) -> np.ndarray:
    """Fit the weights [F] that tell the texts of a label from all others, each text with its weight in the loss."""
    # Takes a second to import, and only training needs it.
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    if settings.loss == "squared_hinge":
        machine = LinearSVC(C=settings.penalty, fit_intercept=False, tol=0.01, random_state=0)
    else:
        machine = LogisticRegression(
            C=settings.penalty,
            solver="liblinear",
            dual=True,
            fit_intercept=False,
            tol=1e-3,
            random_state=0,
            max_iter=1000,
        )
    machine.fit(features, is_label, sample_weight=weights)
    fitted: np.ndarray = machine.coef_[0]
    return fitted


def fit_scale(margins: np.ndarray, labels: np.ndarray, scales: tuple[float, float]) -> float:
    """Return the factor of margins [N, classes] that makes the labels [N] likeliest."""

    def nll(scale: float) -> float:
        return -float(log_softmax(scale * margins, axis=1)[np.arange(len(labels)), labels].mean())

    return float(minimize_scalar(nll, bounds=scales, method="bounded").x)


def _held_out_scale(
    features: csr_matrix, labels: np.ndarray, held_out: np.ndarray, classes: int, settings: LinearSettings
) -> float:
    present = np.unique(labels[~held_out])
    held_out = held_out & np.isin(labels, present)
    if len(present) < 2 or not held_out.any():
        return 1.0  # too few to hold any out
    table = fit_margins(features[~held_out], labels[~held_out], classes, settings)
    return fit_scale(features[held_out] @ table, labels[held_out], settings.scales)


def _factors(features: csr_matrix, labels: np.ndarray, classes: int, power: float) -> np.ndarray:
    """Return powers of the |log-count ratios| [F, classes], with a mean square of 1."""
    present = csr_matrix((np.ones_like(features.data), features.indices, features.indptr), features.shape)
    inside = present.T @ np.eye(classes, dtype=np.float32)[labels] + 1  # [F, classes], smoothed by 1
    outside = np.asarray(present.sum(axis=0)).reshape(-1, 1) - (inside - 1) + 1
    ratios = np.abs(np.log(inside / inside.sum(axis=0)) - np.log(outside / outside.sum(axis=0))) ** power
    scaled: np.ndarray = (ratios / np.sqrt((ratios**2).mean())).astype(np.float32)
    return scaled
