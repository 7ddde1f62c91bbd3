"""The fits of a judge to ratings: of all texts to one input, who is better than the others."""

from __future__ import annotations

import numpy as np

from paddle_dialog.judge import Judge, Kernel, bells, distances

SPARING = 3.0  # a score's weight costs a ninth of a state's
CENTRES = 1600
KERNEL_PENALTY = 3.0
_LEAST = 1e-4  # of the eigenvalues that a kernel is divided by


def fit_order(
    rows: np.ndarray,
    values: np.ndarray,
    inputs: np.ndarray,
    scores: int,
    penalty: float,
    heed: np.ndarray | None = None,
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
        heed: how much each text counts [N]; None counts all alike.
    """
    sizes = _sizes(rows, scores)
    penalties = np.full(rows.shape[1], penalty)
    weights: np.ndarray = _ridge(rows / sizes, values, inputs, penalties, heed) / sizes
    return weights


def fit_judge(
    scores: np.ndarray,
    states: np.ndarray,
    values: np.ndarray,
    inputs: np.ndarray,
    penalty: float,
    heed: np.ndarray | None = None,
) -> tuple[np.ndarray, Judge]:
    """Return weights [F] of the scores and a judge that reads the states, linear and with a kernel.

    The linear part is that of `fit_order`. Beside it stands kernel ridge regression in the form of Nyström (Williams
    and Seeger 2001): bells around texts drawn from the rows, as wide as half of all texts are apart, in coordinates
    where the kernel's own norm is the plain one.

    Args:
        scores: [N, F].
        states: [N, D].
        values: of the N texts.
        inputs: number of the input that each text answers [N].
        penalty: of the linear part's squared weights.
        heed: how much each text counts [N]; None counts all alike.
    """
    rows = np.concatenate([scores, states], axis=1)
    sizes = _sizes(rows, scores.shape[1])
    scaled = states / sizes[scores.shape[1] :]  # [N, D]
    drawn = np.random.default_rng(0).permutation(len(rows))[:CENTRES]
    width = max(float(np.sqrt(np.median(distances(scaled[drawn], scaled[drawn])))), 1.0)
    centres = scaled[drawn] / width  # [M, D]
    lengths, axes = np.linalg.eigh(bells(centres, centres) + _LEAST * np.eye(len(centres)))
    turn = axes / np.sqrt(np.maximum(lengths, _LEAST))  # [M, M]
    turned = bells(scaled / width, centres) @ turn  # [N, M]
    penalties = np.r_[np.full(rows.shape[1], penalty), np.full(len(centres), KERNEL_PENALTY)]
    found = _ridge(np.concatenate([rows / sizes, turned], axis=1), values, inputs, penalties, heed)
    weights = found[: rows.shape[1]] / sizes
    kernel = Kernel(
        centres.astype(np.float32),
        (sizes[scores.shape[1] :] * width).astype(np.float32),
        (turn @ found[rows.shape[1] :]).astype(np.float32),
    )
    return weights[: scores.shape[1]], Judge(weights[scores.shape[1] :], kernel)


def _sizes(rows: np.ndarray, scores: int) -> np.ndarray:
    sizes: np.ndarray = rows.std(axis=0)
    sizes[sizes == 0] = 1.0  # a feature that never varies gets no weight
    sizes[:scores] /= SPARING
    return sizes


def _ridge(
    rows: np.ndarray, values: np.ndarray, inputs: np.ndarray, penalties: np.ndarray, heed: np.ndarray | None
) -> np.ndarray:
    """Return weights [F] of rows [N, F], of which and of the values [N] each input's mean is taken first."""
    _, inputs = np.unique(inputs, return_inverse=True)
    heed = np.ones(len(rows)) if heed is None else heed
    centred, goals = _centred(rows, inputs, heed), _centred(values[:, None], inputs, heed)[:, 0]
    heeded = centred.T * heed  # [F, N]
    weights: np.ndarray = np.linalg.solve(heeded @ centred + np.diag(penalties), heeded @ goals)
    return weights


def _centred(rows: np.ndarray, inputs: np.ndarray, heed: np.ndarray) -> np.ndarray:
    sums = np.zeros((inputs.max(initial=0) + 1, rows.shape[1]))
    np.add.at(sums, inputs, rows * heed[:, None])
    centred: np.ndarray = rows - (sums / np.bincount(inputs, heed)[:, None])[inputs]
    return centred
