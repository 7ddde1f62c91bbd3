"""The linear classifier of a context's n-grams, fitted to the training texts once and then left alone.

A support vector machine over weighted n-grams names the emotion of a new context better than an encoder that learned
from the same few conversations; it is a convex problem, solved in a minute, so that training has nothing to add.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from tasks.empathetic.dataset import DialogueDataset
from tasks.empathetic.emotions import EMOTIONS
from tasks.empathetic.encoding import NGRAMS, DialogueEncoder, EncodedContext

PENALTY = 0.1  # C of the support vector machine; 0.05 to 0.3 do within half a point of accuracy
MARGIN_SCALE = 5.0  # from margins to logits: the likeliest on dev of 4, 5, 6 and 7


def fit_ngram_classifier(
    dataset: DialogueDataset, buckets: int, situations: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Fits the classifier to the annotated contexts of a data set.

    One machine with squared hinge loss an emotion, against all others (Fan et al. 2008, "LIBLINEAR", section 2), over
    vectors of unit length, whose features are idf(bucket) = ln((1 + N) / (1 + texts with it)) + 1.

    Args:
        dataset: training examples.
        buckets: that n-grams are hashed to.
        situations: also fit to the situation sentence of each conversation.

    Returns:
        idf [buckets] and the weights [buckets, 32] that give logits; bucket 0 has zeros.
    """
    contexts, labels = dataset.annotated_contexts(situations)
    idf, table = np.zeros(buckets, dtype=np.float32), np.zeros((buckets, len(EMOTIONS)), dtype=np.float32)
    known = np.unique(labels)
    if len(known) < 2:
        return idf, table  # nothing to tell apart
    features = ngram_features(dataset.encoder, contexts, buckets)  # [N, buckets]
    texts_with = np.bincount(features.indices, minlength=buckets)  # [buckets]
    idf[1:] = np.log((1 + len(labels)) / (1 + texts_with[1:])) + 1
    features.data = idf[features.indices]
    squares = np.asarray(features.multiply(features).sum(axis=1)).ravel()  # [N]
    features.data /= np.repeat(np.sqrt(squares), np.diff(features.indptr))
    # It costs a second to import and only training needs it.
    from sklearn.svm import LinearSVC

    for emotion in known:
        machine = LinearSVC(C=PENALTY, fit_intercept=False, tol=0.01, random_state=0)
        machine.fit(features, labels == emotion)
        table[:, emotion] = MARGIN_SCALE * machine.coef_[0]
    # An emotion that the data lack is less likely than any they have.
    table[:, np.setdiff1d(np.arange(len(EMOTIONS)), known)] = table[:, known].min()
    table[0] = 0.0
    return idf, table


def ngram_features(encoder: DialogueEncoder, contexts: list[EncodedContext], buckets: int) -> csr_matrix:
    """Which buckets each context has, a sparse float32 matrix of ones [N, buckets]."""
    rows = [np.unique(encoder.pack(context)[0][:, NGRAMS:]) for context in contexts]
    rows = [row[row > 0] for row in rows]
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.concatenate(rows)
    return csr_matrix((np.ones(len(columns), np.float32), columns, starts), shape=(len(rows), buckets))
