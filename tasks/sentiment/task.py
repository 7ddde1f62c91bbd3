"""The sentiment task: is a review good or bad?

Importing Paddle takes seconds and answering does not need it, so modules that need it are imported late.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.data.batching import TrainingData
from paddle_dialog.data.files import Record, check_writable, write_records
from paddle_dialog.metrics import Accuracy, calibration_error, confusion_matrix, f1_score
from paddle_dialog.task import Task
from paddle_dialog.tasks.sentiment.data import (
    NAMES,
    ReviewDataset,
    ReviewEncoder,
    SentimentConfig,
    collate,
    read_phrases,
    read_reviews,
)
from paddle_dialog.tasks.sentiment.prediction import Judgement, SentimentPredictor
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.bundle.folder import TrainedModel
    from paddle_dialog.figures import FigureFolder
    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.tasks.sentiment.api import SentimentEndpoint


logger = logging.getLogger("paddle_dialog")
VOCABULARY = "text"
PHRASE_COPIES = 3  # one phrase is an example among five reviews, and each of these has a hundred n-grams


class SentimentTask(Task):
    """Scores how likely a review is good."""

    name = "sentiment"
    config_class = SentimentConfig
    objective = Accuracy()
    vocabulary_names = (VOCABULARY,)
    path_keys = ("data.more", "linear.phrases")

    def prepare_data(
        self, config: SentimentConfig, vocabularies: Mapping[str, Vocabulary] | None
    ) -> TrainingData:
        settings = config.data
        train, more = read_reviews(settings.train, settings.tokens), []
        notes = [f"training data {settings.train}: {len(train):,} reviews"]
        texts = (review.tokens for review in train)
        vocabulary = Vocabulary.of_data(settings, texts, (vocabularies or {}).get(VOCABULARY))
        if settings.more is not None:
            more = read_reviews(settings.more, settings.tokens, settings.more_weight)
            notes.append(f"further texts {settings.more}: {len(more):,} of weight {settings.more_weight}")
        notes.append(f"vocabulary: {len(vocabulary):,} tokens, the four special ones included")
        encoder = ReviewEncoder(config, vocabulary)
        dev = None
        if settings.dev is not None:
            reviews = read_reviews(settings.dev, settings.tokens)
            notes.append(f"dev data {settings.dev}: {len(reviews):,} reviews")
            dev = ReviewDataset(reviews, encoder).encoded()
        return TrainingData(
            ReviewDataset(train, encoder, more).encoded(), dev, {VOCABULARY: vocabulary}, collate, notes
        )

    def build_network(self, config: SentimentConfig, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        from paddle_dialog.tasks.sentiment.network import SentimentNetwork

        return SentimentNetwork(config, vocabulary_sizes[VOCABULARY])

    def build_criterion(self, config: SentimentConfig) -> nn.Layer:
        from paddle_dialog.tasks.sentiment.network import SentimentLoss

        return SentimentLoss()

    def fitted_weights(self, config: SentimentConfig, data: TrainingData) -> Mapping[str, np.ndarray]:
        settings = config.linear
        if not settings.buckets:
            return {}
        from paddle_dialog.tasks.sentiment.network import fit_linear

        logger.info("fitting the linear classifier to the n-grams")
        assert isinstance(data.train.dataset, ReviewDataset)
        reviews = data.train.dataset.own
        if settings.phrases is not None:
            encoder = ReviewEncoder(config, data.vocabularies[VOCABULARY])
            phrases = map(encoder.encode, read_phrases(settings.phrases, config.data.tokens))
            reviews = [*reviews, *PHRASE_COPIES * list(phrases)]
        labels = np.array([review.label for review in reviews])
        table = fit_linear([review.buckets for review in reviews], labels, settings.buckets, settings.penalty)
        return {"linear_table": table[:, None]}

    def predictor(self, config: SentimentConfig, model: TrainedModel) -> SentimentPredictor:
        return SentimentPredictor(config, model)

    def evaluate(self, predictor: SentimentPredictor, source: str, predictions: Path | None) -> Record:
        """Measure a model on one source of reviews.

        Returns:
            `accuracy`, `f1` (of the good ones) and `calibration_error` of the likelier labels; `unclear`, the share
            where that is not clear enough to be said, and `accuracy_clear`, that of the others (None where there is
            none); `confusion`: true labels down, predicted ones across.
        """
        if predictions is not None:
            check_writable(predictions)
        judgements, labels, gold = _judged(predictor, source)
        sure = np.array([judgement.probability for judgement in judgements])
        good = np.where(labels == 1, sure, 1 - sure)
        clear = np.array([judgement.clear for judgement in judgements])
        confusion = confusion_matrix(labels, gold, 2)
        if predictions is not None:
            pairs = zip(judgements, gold.tolist(), strict=True)
            write_records(predictions, [one.as_dict() | {"reference": label} for one, label in pairs])
        return {
            "n": len(judgements),
            "accuracy": float((labels == gold).mean()),
            "unclear": float(1 - clear.mean()),
            "accuracy_clear": float((labels == gold)[clear].mean()) if clear.any() else None,
            "f1": f1_score(confusion),
            "calibration_error": calibration_error(np.stack([1 - good, good], axis=1), gold),
            "confusion": confusion.tolist(),
        }

    def draw_figures(self, predictor: SentimentPredictor, source: str, folder: FigureFolder) -> None:
        """Draw the confusion matrix."""
        from paddle_dialog.figures import draw_confusion_matrix

        _, labels, gold = _judged(predictor, source)
        folder.add("confusion", draw_confusion_matrix(confusion_matrix(labels, gold, 2), NAMES, "sentiment"))

    def example_inputs(self, config: SentimentConfig, source: str, count: int) -> list[str]:
        unit = config.data.tokens
        blank = " " if unit == "words" else ""
        return [blank.join(review.tokens) for review in read_reviews(source, unit)[:count]]

    def endpoints(self, limits: LimitsConfig) -> list[SentimentEndpoint]:
        from paddle_dialog.tasks.sentiment.api import SentimentEndpoint

        return [SentimentEndpoint(limits)]


def _judged(predictor: SentimentPredictor, source: str) -> tuple[list[Judgement], np.ndarray, np.ndarray]:
    """Return the judgements of reviews, the likelier labels [N], and the true ones [N]."""
    reviews = read_reviews(source, predictor.config.data.tokens)
    judgements = predictor.judge(reviews)
    labels, gold = (np.array([one.label for one in each]) for each in (judgements, reviews))
    return judgements, labels, gold


TASK = SentimentTask()
