"""A trained model that judges reviews."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import Predictor, check_request
from tasks.sentiment.config import SentimentConfig
from tasks.sentiment.data import NAMES, Review, ReviewEncoder, collate
from tasks.sentiment.text import ALWAYS, contributions, tokens_of


class Judgement(NamedTuple):
    """The judgement of one review.

    Args:
        label: 1 good, 0 bad.
        probability: of that label.
        tokens: of the review.
        weights: share of each token in the logit of label 1 [S]; with the bias they add up to it.
    """

    label: int
    probability: float
    tokens: list[str]
    weights: np.ndarray


class SentimentPredictor(Predictor):
    """Judges reviews.

    Args:
        config: of the model.
        model: that was trained.
    """

    def __init__(self, config: SentimentConfig, model: TrainedModel) -> None:
        self.config: SentimentConfig = config
        self.trained = model
        (vocabulary,) = model.vocabularies.values()
        self._encoder = ReviewEncoder(config, vocabulary)
        self._model = _judging_model(config, model, len(vocabulary))

    def predict(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge reviews.

        Raises:
            UserError: a text is empty.
        """
        check_request(texts)
        reviews = [Review(tokens_of(text, self.config.data.tokens), 0) for text in texts]
        if not all(review.tokens for review in reviews):
            raise UserError("the text is empty; give a review, e.g. 房间很干净，下次还来。")
        return self.judge(reviews)

    def judge(self, reviews: Sequence[Review]) -> list[Judgement]:
        """Judge tokenised reviews; their labels are ignored."""
        judgements = []
        order = sorted(range(len(reviews)), key=lambda number: len(reviews[number].tokens))
        for start in range(0, len(order), self.batch_size):
            batch = [reviews[number] for number in order[start : start + self.batch_size]]
            ids, lengths, *_ = collate([self._encoder.encode(review) for review in batch])
            shares, bias = self._model.contributions(ids, lengths)  # [B, S]
            judgements += [self._judgement(*one, bias) for one in zip(batch, shares, lengths, strict=True)]
        return [judgement for _, judgement in sorted(zip(order, judgements, strict=True), key=lambda p: p[0])]

    def predict_records(self, texts: Sequence[str]) -> Iterable[Record]:
        """Answer as JSON records: `{"text": …, "label": 0 or 1, "probability": of that label}`."""
        for text, judgement in zip(texts, self.predict(texts), strict=True):
            probability = round(judgement.probability, 4)
            yield {"text": text, "label": judgement.label, "probability": probability}

    def format_record(self, record: Record) -> str:
        """Format label, probability and text in columns."""
        return f"{NAMES[record['label']]}\t{record['probability']:.4f}\t{record['text']}"

    def _judgement(self, review: Review, shares: np.ndarray, length: int, bias: float) -> Judgement:
        """Combine the network's shares [S] of the tokens that it read, and its bias, with the linear machine's."""
        weights = np.zeros(len(review.tokens))
        read, share = int(length), self.config.linear.network_share
        tail = read // 4 if read < len(review.tokens) else 0  # see `shortened`
        weights[: read - tail] = shares[: read - tail] * share
        if tail:
            weights[-tail:] = shares[read - tail : read] * share
        logit = weights.sum() + bias * share
        if self.config.linear.buckets:
            table = self._model.linear_table  # [buckets]
            more = contributions(self._encoder.ngrams(review.tokens), table)
            weights += more
            logit += more.sum() + table[ALWAYS]
        label = int(logit > 0)
        return Judgement(label, float(1 / (1 + np.exp(-abs(logit)))), review.tokens, weights)


def _judging_model(config: SentimentConfig, model: TrainedModel, size: int) -> Any:
    """Return a model with `contributions` and `linear_table` as arrays, without Paddle if possible."""
    from tasks.sentiment.arrays import NumpySentiment, PaddleSentiment

    arrays = model.numpy_model(partial(NumpySentiment, config, size))
    return PaddleSentiment(model.network) if arrays is None else arrays
