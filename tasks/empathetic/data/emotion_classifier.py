"""The linear classifier of emotions over the n-grams of a context, fitted before the network is trained.

Support vector machines over weighted n-grams predict the emotion of a new context better than an encoder that learned
from the same few conversations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, vstack
from scipy.sparse.csgraph import connected_components

from paddle_dialog.linear_classifier import (
    LinearSettings,
    fit_classifier,
    fit_machine,
    sparse_rows,
    unit_vectors,
)
from paddle_dialog.tasks.empathetic.config import EmotionConfig
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.emotions import emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder, column_weights

PENALTY = 0.2  # C of the support vector machines
RATIO_POWER = 0.25  # of the log-count ratios
NEUTRAL_WEIGHT = 5.0  # of a context without emotion in the loss of the machine that detects them
# From which margin of that machine on contexts are neutral, and how gradually.
NEUTRAL_FROM, NEUTRAL_WIDTH = -0.8, 0.05
HELD_OUT = 5  # one in this many conversations is held out to fit the scale


def fit_emotions(
    encoder: DialogueEncoder,
    dialogues: Sequence[Dialogue],
    settings: EmotionConfig,
    neutral: Sequence[Sequence[str]] = (),
) -> dict[str, np.ndarray]:
    """Fit the classifier of n-grams to the annotated contexts of dialogues.

    The features are vectors of unit length of idf(bucket) = ln((1 + N) / (1 + texts with it)) + 1; see
    `paddle_dialog.linear_classifier.fit_classifier` for the machines.

    Args:
        settings: how many buckets, and what else is learned from.
        neutral: contexts without any emotion, which a further machine separates from all others.

    Returns:
        `idf` [buckets], `table` [buckets, C] that gives logits of the emotions (row 0, no feature, has zeros), and
        `plainness` [buckets], whose weighted sum less that of bucket 0 is a logit of there being no emotion.
    """
    emotions, buckets = encoder.language.emotions, settings.ngram_buckets
    texts, conversations = annotated_texts(dialogues, settings.situations)
    labels = np.array([emotion_id(emotion, emotions) for _, emotion in texts], dtype=np.int64)  # [N]
    idf, neutrality = np.zeros(buckets, dtype=np.float32), np.zeros(buckets, dtype=np.float32)
    neutrality[0] = NEUTRAL_FROM / NEUTRAL_WIDTH
    if len(np.unique(labels)) < 2:  # nothing to separate
        return {"idf": idf, "table": np.zeros((buckets, len(emotions)), np.float32), "plainness": neutrality}
    features = ngram_features(encoder, [turns for turns, _ in texts], settings)  # [N, buckets]
    texts_with = np.bincount(features.indices, minlength=buckets)  # [buckets]
    idf[1:] = np.log((1 + len(labels)) / (1 + texts_with[1:])) + 1
    features = unit_vectors(features, idf)
    machine = LinearSettings(PENALTY, ratio_power=RATIO_POWER)
    table = fit_classifier(features, labels, conversations % HELD_OUT == 0, len(emotions), machine)
    table[0] = 0.0
    if neutral:
        both = vstack([features, unit_vectors(ngram_features(encoder, neutral, settings), idf)])
        is_neutral = np.arange(both.shape[0]) >= len(texts)  # [N + M]
        weights = fit_machine(both, is_neutral, machine, np.where(is_neutral, NEUTRAL_WEIGHT, 1.0))
        neutrality[1:] = weights[1:] / NEUTRAL_WIDTH
    return {"idf": idf, "table": table, "plainness": neutrality}


def ngram_features(
    encoder: DialogueEncoder, texts: Sequence[Sequence[str]], settings: EmotionConfig
) -> csr_matrix:
    """Return the buckets of each context, weighted by column, as a sparse float32 matrix [N, buckets]."""
    columns, buckets, weights = column_weights(settings.character_weight), [], []
    for turns in texts:
        ngrams = encoder.ngrams(encoder.context(turns))  # [S, G]
        kept = ngrams > 0
        buckets.append(ngrams[kept])
        weights.append(np.broadcast_to(columns, ngrams.shape)[kept])
    return sparse_rows(buckets, weights, settings.ngram_buckets)


def annotated_texts(
    dialogues: Sequence[Dialogue], situations: bool
) -> tuple[list[tuple[list[str], str]], np.ndarray]:
    """Return contexts with their emotion, and the conversation of each [N]; those of different ones share no text.

    Contexts belong together if they have the same opening or situation, or if one contains the opening of another.

    Args:
        situations: add the situation of each conversation, once, as a context of a single turn.
    """
    openings = {dialogue.context[0]: number for number, dialogue in enumerate(dialogues)}
    first: dict[str, int] = {}  # the first dialogue of each situation
    pairs = []  # of dialogues that belong together
    for number, dialogue in enumerate(dialogues):
        pairs += [(number, openings[turn]) for turn in dialogue.context[::2] if turn in openings]
        if dialogue.situation is not None:
            pairs.append((number, first.setdefault(dialogue.situation, number)))
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    shape = (len(dialogues), len(dialogues))
    graph = coo_matrix((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=shape)
    parts = connected_components(graph, directed=False)[1]  # [dialogues]
    texts = [(d.context, d.emotion, part) for d, part in zip(dialogues, parts, strict=True)]
    if situations:
        known = dict.fromkeys((d.situation, d.emotion) for d in dialogues if d.situation is not None)
        texts += [([situation], emotion, parts[first[situation]]) for situation, emotion in known]
    annotated = [(turns, emotion) for turns, emotion, _ in texts if emotion is not None]
    return annotated, np.array([part for _, emotion, part in texts if emotion is not None], dtype=np.int64)
