"""The settings of the sentiment task, and its data: labelled reviews, their tokens and hashed n-grams."""

from __future__ import annotations

import html
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from paddle_dialog.config.schema import DataConfig, ExperimentConfig
from paddle_dialog.config.typed import Problem, at_least, rate, setting
from paddle_dialog.data import corpora
from paddle_dialog.data.batching import EncodedData, pad_batch
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import normalise_line, read_as_simplified
from paddle_dialog.text.vocabulary import Vocabulary

Unit = Literal["characters", "words"]


@dataclass(frozen=True)
class SentimentDataConfig(DataConfig):
    """Where the reviews come from and what their tokens are."""

    train: str = setting("sample_zh")
    dev: str | None = setting("sample_zh")
    tokens: Literal["characters", "words"] = setting("characters", "what a review is cut into")
    more: str | None = setting(
        None,
        "file of further labelled texts that the network learns from, of another kind; they add no words",
    )
    more_weight: float = rate(0.1, "weight of one of those in the loss; a review has weight 1")
    unknown_rate: float = rate(0.1, "share of the tokens that the network is shown as unknown in training")


@dataclass(frozen=True)
class LinearConfig:
    """The linear classifier over n-grams of tokens, and its share in the answer."""

    longest: int = at_least(1, 3, "tokens of an n-gram at most")
    buckets: int = at_least(
        0, 1 << 18, "buckets that n-grams are hashed to; 0 leaves the classifier out", maximum=1 << 24
    )
    penalty: float = setting(0.3, "inverse strength C of its regularisation", above=0.0)
    phrases: str | None = setting(
        None,
        "short phrases that it learns too, negated ones and neutral ones: `phrases_zh` or `phrases_en`, which ship, "
        "or a file of frames",
    )
    network_share: float = at_least(
        0.0, 1.0, "weight of the network's logit; that of the classifier has weight 1"
    )


@dataclass(frozen=True)
class SentimentConfig(ExperimentConfig):
    """A sentiment recipe; of the model's family only the encoder is used."""

    inference_sections: ClassVar[tuple[str, ...]] = ("unclear_below",)

    data: SentimentDataConfig = field(default_factory=SentimentDataConfig)
    linear: LinearConfig = field(default_factory=LinearConfig)
    unclear_below: float = rate(
        0.6, "where the likelier label has less than this probability, the answer is neither"
    )
    pooling: Literal["attention", "max"] = setting(
        "max", "how the outputs of all tokens become one vector; `attention` is a mean with learned weights"
    )

    @property
    def language(self) -> str:
        """Chinese where reviews are cut into characters."""
        return "zh" if self.data.tokens == "characters" else "en"

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.training.label_smoothing:
            yield "training.label_smoothing", "has no effect on this task's loss; leave it at 0"
        if self.model.sampled_words:
            yield "model.sampled_words", "is for a vocabulary that is predicted; leave it at 0"
        if 0 < self.linear.buckets < 16:
            yield "linear.buckets", f"must be 0 or at least 16, and is {self.linear.buckets}"
        if self.linear.buckets == 0 and self.linear.phrases is not None:
            yield "linear.phrases", "is for the linear classifier, and linear.buckets is 0; leave it out"
        if self.linear.buckets == 0 and self.linear.network_share == 0:
            yield (
                "linear.network_share",
                "is 0, and there is no linear classifier; nothing is left to answer with",
            )


NAMES = ("negative", "positive")  # of the labels 0 and 1
# Contractions as the Penn Treebank cuts them (did n't, it 's), numbers, words with their hyphens, single signs.
_WORDS = re.compile(r"n't\b|'(?:s|re|ve|ll|d|m)\b|\w+?(?=n't\b)|\d+(?:[.,]\d+)+|\w+(?:-\w+)*|[^\w\s]")
ALWAYS = 1  # the bucket of every text; its weight is the bias
FIRST = 2  # first bucket of n-grams
_FACTOR, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


class Review(NamedTuple):
    """A text with its label, 1 for good."""

    tokens: list[str]
    label: int
    weight: float = 1.0  # in the loss


class EncodedReview(NamedTuple):
    """A review as the network and the linear classifier read it."""

    ids: np.ndarray  # [S]
    buckets: np.ndarray  # [M], of its n-grams, each once
    label: int
    weight: float


def read_reviews(source: str, unit: Unit, weight: float = 1.0) -> list[Review]:
    """Read reviews.

    Args:
        source: `sample_zh` or `sample_en` (a few that come with the package), or a file of one of the forms of
            `corpora.read_reviews`.
        unit: what the tokens are.
        weight: of each in the loss.
    """
    shipped, reviews = source in ("sample_zh", "sample_en"), []
    path = Path(__file__).with_name(f"{source}.tsv") if shipped else Path(source)
    for line, label, text in corpora.read_reviews(path):
        tokens = tokens_of(text, unit)
        if not tokens:
            raise UserError(f"{path}:{line}: the text is empty; a line must be {corpora.REVIEWS}")
        reviews.append(Review(tokens, label, weight))
    if not reviews:
        raise UserError(f"{path}: no review in this file; give {corpora.REVIEWS}")
    return reviews


def read_phrases(source: str, unit: Unit) -> list[Review]:
    """Read short phrases, written as frames and what fills them.

    Args:
        source: `phrases_zh` or `phrases_en` (which come with the package), or a UTF-8 file of
            label<TAB>frame<TAB>fillings lines: each of the fillings, which are separated by commas, replaces the
            frame's `*` in one phrase. Label 01 is that of a phrase which is neither, and is returned with both.
        unit: what the tokens are.
    """
    shipped, phrases = source in ("phrases_zh", "phrases_en"), []
    path = Path(__file__).with_name(f"{source}.txt") if shipped else Path(source)
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        labels, frame, fillings = (*line.split("\t"), "", "")[:3]
        if labels not in ("0", "1", "01") or frame.count("*") != 1 or not fillings.strip():
            raise UserError(
                f"{path}:{number}: {line[:20]!r}…; a line must be label<TAB>frame<TAB>fillings, with label 0, 1 or "
                "01, one * in the frame and commas between the fillings"
            )
        texts = [frame.replace("*", filling.strip()) for filling in fillings.split(",")]
        phrases += [Review(tokens_of(text, unit), int(label)) for text in texts for label in labels]
    return phrases


def shortened(tokens: Sequence[str], longest: int) -> list[str]:
    """Return at most `longest` tokens, three quarters of them from the beginning and the rest from the end."""
    if len(tokens) <= longest:
        return list(tokens)
    tail = longest // 4
    return [*tokens[: longest - tail], *(tokens[-tail:] if tail else ())]


class ReviewEncoder:
    """Encodes tokens for network and linear classifier."""

    def __init__(self, config: SentimentConfig, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._longest, self._linear = vocabulary, config.data.max_length, config.linear

    def encode(self, review: Review) -> EncodedReview:
        """Encode a review as ids and buckets."""
        ids = np.array(self._vocabulary.encode(shortened(review.tokens, self._longest)), dtype=np.int64)
        return EncodedReview(ids, present(self.ngrams(review.tokens)), review.label, review.weight)

    def ngrams(self, tokens: Sequence[str]) -> np.ndarray:
        """Return the buckets of the n-grams that begin at each token, [longest, S]; none without buckets."""
        if not self._linear.buckets:
            return np.zeros((1, len(tokens)), dtype=np.int64)
        return ngram_buckets(tokens, self._linear.longest, self._linear.buckets)


class ReviewDataset:
    """Encoded reviews, and further texts of another kind; `own` are the reviews alone."""

    def __init__(
        self, reviews: Sequence[Review], encoder: ReviewEncoder, more: Sequence[Review] = ()
    ) -> None:
        self.own = [encoder.encode(review) for review in reviews]
        self.reviews = [*self.own, *map(encoder.encode, more)]

    def encoded(self) -> EncodedData:
        """Return the reviews with the lengths that batches are made by."""
        return EncodedData(self, np.array([len(review.ids) for review in self.reviews]))

    def __len__(self) -> int:
        return len(self.reviews)

    def __getitem__(self, index: int) -> EncodedReview:
        return self.reviews[index]


class ReviewBatch(NamedTuple):
    """A training batch."""

    ids: np.ndarray  # [B, S]
    lengths: np.ndarray  # [B]
    buckets: np.ndarray  # of the n-grams [B, M]
    label: np.ndarray  # int64 [B]
    weight: np.ndarray  # float32 [B]


def collate(reviews: Sequence[EncodedReview]) -> ReviewBatch:
    """Pad reviews to a batch."""
    ids, lengths = pad_batch([review.ids for review in reviews], Vocabulary.pad_id)
    buckets, _ = pad_batch([review.buckets for review in reviews], 0)
    labels = np.array([review.label for review in reviews], dtype=np.int64)
    weights = np.array([review.weight for review in reviews], dtype=np.float32)
    return ReviewBatch(ids, lengths, buckets, labels, weights)


def tokens_of(text: str, unit: Unit) -> list[str]:
    """Return the tokens of a text in lower case, HTML entities resolved, without blanks."""
    text = read_as_simplified(html.unescape(text)).lower()
    return list(normalise_line(text)) if unit == "characters" else _WORDS.findall(text.replace("’", "'"))


def ngram_buckets(tokens: Sequence[str], longest: int, buckets: int) -> np.ndarray:
    """Return the bucket of each n-gram.

    Args:
        tokens: S of them.
        longest: greatest number of tokens in an n-gram.
        buckets: number of buckets; 0 means no n-gram, and `ALWAYS` is not given out.

    Returns:
        int64 [longest, S]: row n - 1 holds the n-grams of n tokens at the position where each begins.
    """
    hashes = np.array([zlib.crc32(token.encode("utf-8")) for token in tokens], dtype=np.uint64)  # [S]
    found = np.zeros((longest, len(tokens)), dtype=np.int64)
    rolling = np.zeros_like(hashes)
    for size in range(1, min(longest, len(tokens)) + 1):
        count = len(tokens) - size + 1
        rolling = (rolling[:count] + hashes[size - 1 :] + np.uint64(size)) * _FACTOR  # wraps at 2^64
        mixed = (rolling ^ (rolling >> _MIX)) % np.uint64(buckets - FIRST)
        found[size - 1, :count] = mixed.astype(np.int64) + FIRST
    return found


def present(found: np.ndarray) -> np.ndarray:
    """Return the buckets of a text's n-grams [longest, S], each once, `ALWAYS` first."""
    return np.concatenate([[ALWAYS], np.unique(found[found > 0])])


def contributions(found: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the share of each token in the linear classifier's logit, which is the sum of these and the bias.

    A bucket's weight is shared evenly among the n-grams that fall into it, and that of an n-gram among its tokens.

    Args:
        found: buckets of the n-grams [longest, S].
        table: weight of each bucket [buckets].

    Returns:
        float64 [S].
    """
    shares = np.zeros(found.shape[1])
    names, place, counts = np.unique(found, return_inverse=True, return_counts=True)
    weights = np.where(names > 0, table[names], 0.0) / counts  # of one n-gram of each bucket
    for size, row in enumerate(weights[place.reshape(found.shape)], start=1):
        for offset in range(size):
            shares[offset:] += row[: len(row) - offset] / size
    return shares
