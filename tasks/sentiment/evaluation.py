"""All metrics of a sentiment model on one file of reviews."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paddle_dialog.data.files import Record, check_writable, write_records
from paddle_dialog.figures import FigureFolder, draw_confusion_matrix
from paddle_dialog.metrics import calibration_error, confusion_matrix, f1_score
from paddle_dialog.tasks.sentiment.data import NAMES, Review, read_reviews
from paddle_dialog.tasks.sentiment.prediction import Judgement, SentimentPredictor


def evaluate(predictor: SentimentPredictor, source: str, predictions: Path | None) -> Record:
    """Measure a model on one source of reviews.

    Args:
        source: as for `read_reviews`.
        predictions: where the answers are written, one JSON record a line with the true label as `reference`.

    Returns:
        `accuracy`, `f1` (of the good ones) and `calibration_error` of the likelier labels; `unclear`, the share where
        that is not clear enough to be said, and `accuracy_clear`, that of the others (None where there is none);
        `confusion`: true labels down, predicted ones across.
    """
    if predictions is not None:
        check_writable(predictions)
    reviews, judgements, labels, gold = _judged(predictor, source)
    sure = np.array([judgement.probability for judgement in judgements])
    good = np.where(labels == 1, sure, 1 - sure)
    clear = np.array([judgement.clear for judgement in judgements])
    confusion = confusion_matrix(labels, gold, 2)
    if predictions is not None:
        records = [judgement.as_dict() for judgement in judgements]
        write_records(
            predictions, [r | {"reference": int(label)} for r, label in zip(records, gold, strict=True)]
        )
    return {
        "n": len(reviews),
        "accuracy": float((labels == gold).mean()),
        "unclear": float(1 - clear.mean()),
        "accuracy_clear": float((labels == gold)[clear].mean()) if clear.any() else None,
        "f1": f1_score(confusion),
        "calibration_error": calibration_error(np.stack([1 - good, good], axis=1), gold),
        "confusion": confusion.tolist(),
    }


def draw_figures(predictor: SentimentPredictor, source: str, folder: FigureFolder) -> None:
    """Draw the confusion matrix."""
    _, _, labels, gold = _judged(predictor, source)
    folder.add("confusion", draw_confusion_matrix(confusion_matrix(labels, gold, 2), NAMES, "sentiment"))


def _judged(
    predictor: SentimentPredictor, source: str
) -> tuple[list[Review], list[Judgement], np.ndarray, np.ndarray]:
    """Return reviews, their judgements, the likelier labels [N], and the true ones [N]."""
    reviews = read_reviews(source, predictor.config.data.tokens)
    judgements = predictor.judge(reviews)
    labels, gold = (np.array([one.label for one in each]) for each in (judgements, reviews))
    return reviews, judgements, labels, gold
