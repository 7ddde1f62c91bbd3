"""The linear classifier of a context's n-grams, fitted once to the training texts and then fixed.

Support vector machines over weighted n-grams predict the emotion of a new context better than an encoder that learned
from the same few conversations. They are convex problems, solved in minutes, so training has nothing to add.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix, diags_array, vstack
from scipy.special import log_softmax

from tasks.empathetic.data.dataset import DialogueDataset
from tasks.empathetic.data.encoding import NGRAMS, DialogueEncoder, EncodedContext
from tasks.empathetic.emotion.ngrams import column_weights

PENALTY = 0.2  # C of the support vector machines
RATIO_POWER = 0.25  # of the log-count ratios; 0 would leave them out
PLAIN_WEIGHT = 5.0  # of a context without emotion in the loss of the machine that tells them
PLAIN_FROM, PLAIN_WIDTH = (
    -0.8,
    0.05,
)  # from which margin of that machine on contexts are plain, and how gradually
HELD_OUT = 5  # one in this many conversations is held out to fit the scale
SCALES = (0.1, 50.0)  # range of the factor from margins to logits


class NgramClassifier(NamedTuple):
    """The fitted weights.

    Args:
        idf: weights of the features [buckets].
        table: weights that give logits of the emotions [buckets, 32]; row 0 has zeros.
        plainness: weights that give a logit of there being no emotion [buckets]; at 0, which no feature has, stands
            what is subtracted from it.
    """

    idf: np.ndarray
    table: np.ndarray
    plainness: np.ndarray


def fit_ngram_classifier(
    dataset: DialogueDataset,
    buckets: int,
    situations: bool,
    character_weight: float = 1.0,
    plain: Sequence[Sequence[str]] = (),
) -> NgramClassifier:
    """Fit the classifier to the annotated contexts of a data set.

    The features are vectors of unit length of idf(bucket) = ln((1 + N) / (1 + texts with it)) + 1. For each emotion
    they are scaled by a power of their |log-count ratio| (Wang and Manning 2012, "Baselines and Bigrams", section
    2.3, where the power is 1) for a machine with squared hinge loss, it against all others (Fan et al. 2008,
    "LIBLINEAR", section 2). One scale turns their margins into logits: the most likely
    one on conversations held out of a separate fit (as the temperature of Guo et al. 2017, "On Calibration of Modern
    Neural Networks", section 4.2).

    Args:
        dataset: training examples.
        buckets: number of buckets that n-grams are hashed to.
        situations: also fit to the situation sentence of each conversation.
        character_weight: of the n-grams of characters beside those of words.
        plain: contexts without any emotion, which a further machine tells from all others.
    """
    contexts, labels = dataset.annotated_contexts(situations)
    classes = len(dataset.encoder.language.emotions)
    idf, table = np.zeros(buckets, dtype=np.float32), np.zeros((buckets, classes), dtype=np.float32)
    if len(np.unique(labels)) < 2:
        return NgramClassifier(idf, table, _plainness(buckets))  # no contexts to tell apart
    encoder = dataset.encoder
    features = ngram_features(encoder, contexts, buckets, character_weight)  # [N, buckets]
    texts_with = np.bincount(features.indices, minlength=buckets)  # [buckets]
    idf[1:] = np.log((1 + len(labels)) / (1 + texts_with[1:])) + 1
    features = _unit_vectors(features, idf)
    held_out = dataset.conversations(situations) % HELD_OUT == 0  # [N]
    table[:] = _of_labels(features, labels, held_out, classes)
    table[0] = 0.0
    if not plain:
        return NgramClassifier(idf, table, _plainness(buckets))
    others = _vectors(encoder, plain, idf, character_weight)
    machine = _machine(vstack([features, others]), len(plain))
    return NgramClassifier(idf, table, _plainness(buckets, machine))


def _of_labels(features: csr_matrix, labels: np.ndarray, held_out: np.ndarray, classes: int) -> np.ndarray:
    """Return the weights [buckets, classes] that tell the labels [N] of texts [N, buckets], scaled to logits."""
    table = _scale(features, labels, held_out, classes) * _margins(features, labels, classes)
    known = np.unique(labels)
    # An emotion that is not in the data is less likely than any that is.
    table[:, np.setdiff1d(np.arange(classes), known)] = table[:, known].min()
    return table


def _plainness(buckets: int, machine: np.ndarray | None = None) -> np.ndarray:
    """Return the weights [buckets] of what tells plain contexts from others: those of a machine, or none."""
    weights = np.zeros(buckets, dtype=np.float32)
    weights[0] = PLAIN_FROM / PLAIN_WIDTH
    if machine is not None:
        weights[1:] = machine[1:] / PLAIN_WIDTH
    return weights


def ngram_features(
    encoder: DialogueEncoder,
    contexts: Sequence[EncodedContext],
    buckets: int,
    character_weight: float = 1.0,
) -> csr_matrix:
    """Return the buckets of each context, weighted by column, as a sparse float32 matrix [N, buckets]."""
    found, weights = [], []
    for context in contexts:
        packed = encoder.pack(context)[0][:, NGRAMS:]  # [S, G]
        kept = packed > 0
        found.append(packed[kept])
        weights.append(np.broadcast_to(column_weights(character_weight), packed.shape)[kept])
    starts = np.cumsum([0, *map(len, found)])
    shape = (len(found), buckets)
    return csr_matrix((np.concatenate(weights), np.concatenate(found), starts), shape=shape)


def _vectors(
    encoder: DialogueEncoder, texts: Sequence[Sequence[str]], idf: np.ndarray, character_weight: float
) -> csr_matrix:
    """Return the unit vectors [N, buckets] of contexts, given as turns."""
    contexts = [encoder.context(turns) for turns in texts]
    return _unit_vectors(ngram_features(encoder, contexts, len(idf), character_weight), idf)


def _unit_vectors(features: csr_matrix, idf: np.ndarray) -> csr_matrix:
    """Weight features [N, buckets] by idf and scale them to unit length, in place."""
    features.sort_indices()
    features.data *= idf[features.indices]
    squares = np.asarray(features.multiply(features).sum(axis=1)).ravel()  # [N]
    features.data /= np.repeat(np.sqrt(squares), np.diff(features.indptr))
    return features


def _scale(features: csr_matrix, labels: np.ndarray, held_out: np.ndarray, classes: int) -> float:
    """Fit the factor that turns margins into logits.

    Args:
        features: unit vectors [N, buckets].
        labels: emotions [N].
        held_out: the examples that the factor is fitted to [N]; the machines are fitted to the others.
        classes: how many emotions there are.
    """
    known = np.unique(labels[~held_out])
    held_out = held_out & np.isin(labels, known)
    if len(known) < 2 or not held_out.any():
        return 1.0  # too few to hold any out
    fitted = _margins(features[~held_out], labels[~held_out], classes)
    margins, gold = features[held_out] @ fitted, labels[held_out]  # [K, 32], [K]

    def nll(scale: float) -> float:
        return -float(log_softmax(scale * margins, axis=1)[np.arange(len(gold)), gold].mean())

    return float(minimize_scalar(nll, bounds=SCALES, method="bounded").x)


def _machine(features: csr_matrix, plain: int) -> np.ndarray:
    """Fit the machine [buckets] that tells the last `plain` of the features [N, buckets] from the others."""
    from sklearn.svm import LinearSVC

    is_plain = np.arange(features.shape[0]) >= features.shape[0] - plain  # [N]
    machine = LinearSVC(C=PENALTY, fit_intercept=False, tol=0.01, random_state=0)
    machine.fit(features, is_plain, sample_weight=np.where(is_plain, PLAIN_WEIGHT, 1.0))
    weights: np.ndarray = machine.coef_[0]
    return weights


def _margins(features: csr_matrix, labels: np.ndarray, classes: int) -> np.ndarray:
    """Fit the weights [buckets, C] of each emotion's machine; 0 for emotions not among the labels [N]."""
    # Takes a second to import, and only training needs it.
    from sklearn.svm import LinearSVC

    table = np.zeros((features.shape[1], classes), dtype=np.float32)
    ratios = _ratios(features, labels, classes)  # [buckets, C]
    for emotion in np.unique(labels):
        ratio = ratios[:, emotion]  # [buckets]
        machine = LinearSVC(C=PENALTY, fit_intercept=False, tol=0.01, random_state=0)
        machine.fit(features @ diags_array(ratio), labels == emotion)
        table[:, emotion] = machine.coef_[0] * ratio
    return table


def _ratios(features: csr_matrix, labels: np.ndarray, classes: int) -> np.ndarray:
    """Return factors of the features [buckets, C]: powers of the |log-count ratios|, with a mean square of 1."""
    present = csr_matrix((np.ones_like(features.data), features.indices, features.indptr), features.shape)
    emotions = np.eye(classes, dtype=np.float32)[labels]  # [N, C]
    inside = present.T @ emotions + 1  # [buckets, C], smoothed by 1
    outside = np.asarray(present.sum(axis=0)).reshape(-1, 1) - (inside - 1) + 1
    ratios = (
        np.abs(np.log(inside / inside.sum(axis=0)) - np.log(outside / outside.sum(axis=0))) ** RATIO_POWER
    )
    scaled: np.ndarray = (ratios / np.sqrt((ratios**2).mean())).astype(np.float32)
    return scaled
