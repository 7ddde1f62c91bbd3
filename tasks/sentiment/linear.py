"""The linear machine over n-grams, fitted once to the training reviews and then fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix, diags_array

from tasks.sentiment.text import ALWAYS

HELD_OUT = 5  # one in this many reviews is held out to fit the scale
SCALES = (0.05, 10.0)  # range of the scale


def fit_linear(buckets: Sequence[np.ndarray], labels: np.ndarray, size: int, penalty: float) -> np.ndarray:
    """Fit a logistic regression to n-grams scaled by their log-count ratios.

    Ratios as in Wang and Manning 2012, "Baselines and Bigrams", section 2.1, over the presence of n-grams; the
    regression is that of LIBLINEAR (Fan et al. 2008). One scale turns its logits into probabilities on reviews held
    out of a separate fit (as the temperature of Guo et al. 2017, "On Calibration of Modern Neural Networks").

    Args:
        buckets: those of each review's n-grams, each once.
        labels: 0 or 1 [N].
        size: number of buckets.
        penalty: inverse strength C of the regularisation.

    Returns:
        float32 [size]: the weight of each bucket; the logit of label 1 is their sum.
    """
    starts = np.cumsum([0, *map(len, buckets)])
    ones = np.ones(int(starts[-1]))
    features = csr_matrix((ones, np.concatenate(buckets), starts), shape=(len(buckets), size))
    if len(np.unique(labels)) < 2:
        return np.zeros(size, dtype=np.float32)  # only one label
    held_out = np.arange(len(labels)) % HELD_OUT == 0
    scale = 1.0
    if len(np.unique(labels[~held_out])) == 2:
        part = _fit(features[~held_out], labels[~held_out], penalty)
        logits, signs = features[held_out] @ part, 2 * labels[held_out] - 1

        def loss(factor: float) -> float:
            return float(np.logaddexp(0.0, -factor * signs * logits).sum())

        scale = float(minimize_scalar(loss, bounds=SCALES, method="bounded").x)
    return (scale * _fit(features, labels, penalty)).astype(np.float32)


def _fit(features: csr_matrix, labels: np.ndarray, penalty: float) -> np.ndarray:
    from sklearn.linear_model import (
        LogisticRegression,
    )  # takes a second to import, and only training needs it

    counts = [
        np.asarray(features[labels == label].sum(axis=0)).ravel() + 1.0 for label in (0, 1)
    ]  # [size] each
    ratios = np.log(counts[1] / counts[1].sum()) - np.log(counts[0] / counts[0].sum())  # [size]
    ratios[ALWAYS] = 1.0
    machine = LogisticRegression(
        C=penalty, solver="liblinear", dual=True, fit_intercept=False, tol=1e-3, max_iter=300, random_state=0
    )
    machine.fit(features @ diags_array(ratios), labels)
    fitted: np.ndarray = machine.coef_[0] * ratios
    return fitted
