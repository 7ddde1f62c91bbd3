"""The linear classifier over n-grams, fitted once to the training reviews and then fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix, diags_array

from paddle_dialog.linear_classifier import LinearSettings, fit_machine, fit_scale, sparse_rows
from paddle_dialog.tasks.sentiment.data import ALWAYS

HELD_OUT = 5  # one in this many reviews is held out to fit the scale
SCALES = (0.05, 10.0)  # range of the scale


def fit_linear(buckets: Sequence[np.ndarray], labels: np.ndarray, size: int, penalty: float) -> np.ndarray:
    """Fit a logistic regression to n-grams scaled by their log-count ratios.

    Ratios as in Wang and Manning 2012, "Baselines and Bigrams", section 2.1, over the presence of n-grams. One scale
    turns the logits into probabilities on reviews held out of a separate fit.

    Args:
        buckets: those of each review's n-grams, each once.
        labels: 0 or 1 [N].
        penalty: inverse strength C of the regularisation.

    Returns:
        float32 [size]: the weight of each bucket; the logit of label 1 is their sum.
    """
    settings = LinearSettings(penalty, "log", scales=SCALES)
    features = sparse_rows(buckets, [np.ones(len(row)) for row in buckets], size)
    if len(np.unique(labels)) < 2:  # nothing to separate
        return np.zeros(size, dtype=np.float32)
    held_out, scale = np.arange(len(labels)) % HELD_OUT == 0, 1.0
    if len(np.unique(labels[~held_out])) == 2:
        logits = features[held_out] @ _fit(features[~held_out], labels[~held_out], settings)
        scale = fit_scale(np.stack([np.zeros_like(logits), logits], axis=1), labels[held_out], SCALES)
    return (scale * _fit(features, labels, settings)).astype(np.float32)


def _fit(features: csr_matrix, labels: np.ndarray, settings: LinearSettings) -> np.ndarray:
    """Return the weight of each bucket [size]; the bucket of every text has no ratio."""
    counts = [np.asarray(features[labels == label].sum(axis=0)).ravel() + 1.0 for label in (0, 1)]
    ratios = np.log(counts[1] / counts[1].sum()) - np.log(counts[0] / counts[0].sum())  # [size]
    ratios[ALWAYS] = 1.0
    return fit_machine(features @ diags_array(ratios), labels, settings) * ratios
