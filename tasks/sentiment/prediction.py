"""A trained model that judges reviews."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from paddle_dialog.bundle.trained import TrainedNetwork
from paddle_dialog.errors import UserError
from paddle_dialog.figures.folder import FigureFolder
from paddle_dialog.predictor import Predictor
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.sentiment.config import SentimentConfig
from tasks.sentiment.data import NAMES, Review, ReviewEncoder, collate, read_reviews
from tasks.sentiment.text import ALWAYS, contributions, tokens_of

if TYPE_CHECKING:
    from paddle import nn


class Judgement(NamedTuple):
    """What a model makes of one review.

    Args:
        label: 1 good, 0 bad.
        probability: of that label.
        tokens: of the review.
        weights: what each token adds to the logit of label 1 [S]; with the bias they are the whole of it.
    """

    label: int
    probability: float
    tokens: list[str]
    weights: np.ndarray


class SentimentPredictor(Predictor):
    """Judges reviews.

    Args:
        config: of the model.
        network: the trained network, or one that is built when it is asked for.
        vocabulary: of the network.
    """

    def __init__(
        self, config: SentimentConfig, network: nn.Layer | TrainedNetwork, vocabulary: Vocabulary
    ) -> None:
        self.config: SentimentConfig = config
        self.vocabulary, self.trained = vocabulary, network
        self._encoder = ReviewEncoder(config, vocabulary)
        self._model = _judging_model(config, network, len(vocabulary))

    def predict(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge reviews.

        Raises:
            UserError: a text is empty.
        """
        reviews = [Review(tokens_of(text, self.config.data.tokens), 0) for text in texts]
        if not all(review.tokens for review in reviews):
            raise UserError("the text is empty; give a review, e.g. 房间很干净，下次还来。")
        return self.judge(reviews)

    def judge(self, reviews: Sequence[Review]) -> list[Judgement]:
        """Judge reviews that are tokens already; their labels are not looked at."""
        judgements = []
        order = sorted(range(len(reviews)), key=lambda number: len(reviews[number].tokens))
        for start in range(0, len(order), self.batch_size):
            batch = [reviews[number] for number in order[start : start + self.batch_size]]
            ids, lengths, *_ = collate([self._encoder.encode(review) for review in batch])
            shares, bias = self._model.contributions(ids, lengths)  # [B, S]
            judgements += [self._judgement(*one, bias) for one in zip(batch, shares, lengths, strict=True)]
        return [judgement for _, judgement in sorted(zip(order, judgements, strict=True), key=lambda p: p[0])]

    def predict_records(self, texts: Sequence[str]) -> Iterable[dict[str, Any]]:
        """Answer as JSON records: `{"text": …, "label": 0 or 1, "probability": of that label}`."""
        for text, judgement in zip(texts, self.predict(texts), strict=True):
            probability = round(judgement.probability, 4)
            yield {"text": text, "label": judgement.label, "probability": probability}

    def format_record(self, record: dict[str, Any]) -> str:
        """Return label, probability and text in columns."""
        return f"{NAMES[record['label']]}\t{record['probability']:.4f}\t{record['text']}"

    def example_inputs(self, source: str, count: int) -> list[str]:
        """Return the first reviews of a source."""
        unit = self.config.data.tokens
        blank = " " if unit == "words" else ""
        return [blank.join(review.tokens) for review in read_reviews(source, unit)[:count]]

    def evaluate(self, source: str, predictions: Path | None) -> dict[str, Any]:
        """Return all metrics on one source of reviews."""
        from tasks.sentiment.evaluation import evaluate

        return evaluate(self, source, predictions)

    def draw_figures(self, source: str, folder: FigureFolder) -> None:
        """Return which tokens decided the first reviews, and the confusion matrix."""
        from tasks.sentiment.evaluation import draw_figures

        draw_figures(self, source, folder)

    def _judgement(self, review: Review, shares: np.ndarray, length: int, bias: float) -> Judgement:
        """Return the judgement of the network's shares [S] of the tokens that it read, and its bias."""
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


def _judging_model(config: SentimentConfig, network: nn.Layer | TrainedNetwork, size: int) -> Any:
    """Return what has `contributions` and `linear_table` as arrays, without Paddle where that is possible."""
    from tasks.sentiment.arrays import NumpySentiment, PaddleSentiment

    if not isinstance(network, TrainedNetwork):
        return PaddleSentiment(network)
    return network.over_arrays(lambda arrays: NumpySentiment(config, size, arrays)) or PaddleSentiment(
        network.network
    )
