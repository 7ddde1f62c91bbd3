"""Reading labelled reviews and turning them into batches."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paddle_dialog.data.files import read_lines
from paddle_dialog.data.lengths import pad_batch
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.sentiment.config import SentimentConfig
from tasks.sentiment.text import Unit, ngram_buckets, present, tokens_of

NAMES = ("negative", "positive")  # of the labels 0 and 1


class Review(NamedTuple):
    """A text with its label, 1 for good."""

    tokens: list[str]
    label: int
    weight: float = 1.0  # in the loss


class EncodedReview(NamedTuple):
    """A review as the network and the linear machine read it."""

    ids: np.ndarray  # [S]
    buckets: np.ndarray  # [M], of its n-grams, each once
    label: int
    weight: float


def read_reviews(source: str, unit: Unit, weight: float = 1.0) -> list[Review]:
    """Read reviews.

    Args:
        source: `sample_zh` or `sample_en` (a few that come with the package), or a UTF-8 file of label<TAB>text lines
            with labels 0 and 1 (`.xz` and `.gz` are read as they are; blank lines are skipped).
        unit: what the tokens are.
        weight: what each counts in the loss.

    Raises:
        UserError: the source cannot be read, or a line of it is not a review (named by file and number).
    """
    path = Path(source)
    if source in ("sample_zh", "sample_en"):
        path = Path(str(importlib.resources.files(__package__) / f"{source}.tsv"))
    reviews = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        label, tab, text = line.partition("\t")
        if not tab or label not in ("0", "1"):
            raise UserError(
                f"{path}:{number}: {line[:20]!r}…; a line must be label<TAB>text with label 0 or 1"
            )
        tokens = tokens_of(text, unit)
        if not tokens:
            raise UserError(f"{path}:{number}: the text is empty; a line must be label<TAB>text")
        reviews.append(Review(tokens, int(label), weight))
    if not reviews:
        raise UserError(f"{path}: no review in this file; give at least one line of label<TAB>text")
    return reviews


def shortened(tokens: Sequence[str], longest: int) -> list[str]:
    """Return at most `longest` tokens, three quarters of them from the beginning and the rest from the end."""
    if len(tokens) <= longest:
        return list(tokens)
    tail = longest // 4
    return [*tokens[: longest - tail], *(tokens[-tail:] if tail else ())]


class ReviewEncoder:
    """Encodes tokens for the model.

    Args:
        config: how many tokens the network reads, and which n-grams there are.
        vocabulary: of the network.
    """

    def __init__(self, config: SentimentConfig, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._longest, self._linear = vocabulary, config.data.max_length, config.linear

    def encode(self, review: Review) -> EncodedReview:
        """Encode a review as ids and buckets."""
        ids = np.array(self._vocabulary.encode(shortened(review.tokens, self._longest)), dtype=np.int64)
        return EncodedReview(ids, present(self.ngrams(review.tokens)), review.label, review.weight)

    def ngrams(self, tokens: Sequence[str]) -> np.ndarray:
        """Return the buckets of the n-grams that begin at each token, [longest, S]; none without a linear machine."""
        if not self._linear.buckets:
            return np.zeros((1, len(tokens)), dtype=np.int64)
        return ngram_buckets(tokens, self._linear.longest, self._linear.buckets)


class ReviewBatch(NamedTuple):
    """A training batch.

    Args:
        ids: [B, S].
        lengths: [B].
        buckets: of the n-grams [B, M].
        label: int64 [B].
        weight: float32 [B].
    """

    ids: np.ndarray
    lengths: np.ndarray
    buckets: np.ndarray
    label: np.ndarray
    weight: np.ndarray


def collate(reviews: Sequence[EncodedReview]) -> ReviewBatch:
    """Pad reviews to a batch."""
    ids, lengths = pad_batch([review.ids for review in reviews], Vocabulary.pad_id)
    buckets, _ = pad_batch([review.buckets for review in reviews], 0)
    labels = np.array([review.label for review in reviews], dtype=np.int64)
    weights = np.array([review.weight for review in reviews], dtype=np.float32)
    return ReviewBatch(ids, lengths, buckets, labels, weights)
