"""Metrics of replies and predicted emotions; perplexity, which needs the model, is elsewhere.

All reply metrics count the units of the language, for hypotheses and references alike: the tokens of `tokenise`
(lower case, contractions written out, Treebank), or Chinese characters.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from paddle_dialog.metrics import classification
from paddle_dialog.metrics.bleu import corpus_bleu
from paddle_dialog.metrics.distinct import distinct_n
from tasks.empathetic.data.emotions import EMOTIONS, emotion_id
from tasks.empathetic.data.language import ENGLISH, Language

OPENINGS = 10  # the commonest ones


def reply_metrics(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], language: Language = ENGLISH
) -> dict[str, float]:
    """Score generated replies.

    Args:
        hypotheses: units of the best reply to each context.
        references: units of the true reply to each context.
        language: of them.

    Returns:
        `bleu` (0-100), `distinct_1`, `distinct_2`, `unique_replies`, `stock_replies`, `repeated_4grams`
        (all 0-1) and `mean_length` (units a reply); in Chinese also `common_openings` (0-1).

    Raises:
        ValueError: there is no reply, or the numbers differ.
    """
    openings = {}
    if language.opening:
        openings["common_openings"] = common_openings(hypotheses, language.opening)
    return {
        "bleu": corpus_bleu(hypotheses, references),
        "distinct_1": distinct_n(hypotheses, 1),
        "distinct_2": distinct_n(hypotheses, 2),
        "unique_replies": unique_replies(hypotheses),
        "stock_replies": stock_replies(hypotheses, language.stock_phrase),
        **openings,
        "repeated_4grams": repeated_ngrams(hypotheses, 4),
        "mean_length": mean_length(hypotheses),
    }


def unique_replies(replies: Sequence[Sequence[str]]) -> float:
    """Return the number of different replies / the number of replies."""
    return _share(len({tuple(reply) for reply in replies}), replies)


def stock_replies(replies: Sequence[Sequence[str]], phrase: tuple[str, ...] = ENGLISH.stock_phrase) -> float:
    """Return the share of replies that have a phrase ("sorry to hear") anywhere."""
    return _share(sum(phrase in _ngrams(reply, len(phrase)) for reply in replies), replies)


def common_openings(replies: Sequence[Sequence[str]], units: int) -> float:
    """Return the share of replies whose first `units` units are one of the ten commonest such beginnings."""
    found = Counter(tuple(reply[:units]) for reply in replies)
    return _share(sum(count for _, count in found.most_common(OPENINGS)), replies)


def repeated_ngrams(replies: Sequence[Sequence[str]], n: int) -> float:
    """Return the share of replies in which some n-gram stands twice or more (overlapping counts)."""
    repeating = 0
    for reply in replies:
        ngrams = _ngrams(reply, n)
        repeating += len(set(ngrams)) < len(ngrams)
    return _share(repeating, replies)


def mean_length(replies: Sequence[Sequence[str]]) -> float:
    """Return the mean number of tokens in a reply, the end token not counted."""
    return _share(sum(map(len, replies)), replies)


def emotion_accuracy(predicted: Sequence[str], gold: Sequence[str | None]) -> float | None:
    """Return the share of contexts whose predicted emotion is the annotated one.

    Args:
        predicted: the most probable label for each context.
        gold: the annotated label, None where there is none; such contexts are left out.

    Returns:
        The accuracy in 0-1, or None if no context is annotated.

    Raises:
        ValueError: the numbers differ.
    """
    judged = [guess == label for guess, label in zip(predicted, gold, strict=True) if label is not None]
    return sum(judged) / len(judged) if judged else None


def calibration_error(
    probabilities: np.ndarray, gold: Sequence[str | None], emotions: Sequence[str] = EMOTIONS
) -> float | None:
    """Return `paddle_dialog.metrics.classification.calibration_error` of the emotions.

    Args:
        probabilities: of the emotions for each context [N, 32].
        gold: the annotated label, None where there is none; such contexts are left out.
        emotions: that the probabilities are of.

    Returns:
        The error in 0-1, or None if no context is annotated.

    Raises:
        ValueError: the numbers differ.
    """
    if len(probabilities) != len(gold):
        raise ValueError(f"{len(probabilities)} contexts have probabilities and {len(gold)} a label")
    known = [index for index, label in enumerate(gold) if label is not None]
    if not known:
        return None
    labels = np.array([emotion_id(gold[index] or "", emotions) for index in known])  # [K]
    return classification.calibration_error(probabilities[known], labels)


def _ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]


def _share(count: int, replies: Sequence[Sequence[str]]) -> float:
    if not replies:
        raise ValueError("no reply to measure; give at least one")
    return count / len(replies)
