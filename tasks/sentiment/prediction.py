"""A trained model that judges reviews."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.data.files import Record
from paddle_dialog.errors import UserError
from paddle_dialog.models.families import numpy_encoder
from paddle_dialog.models.numpy_operators import (
    NumpyLinear,
    Weights,
    padding_mask,
    require_supported,
    softmax,
)
from paddle_dialog.predictor import Predictor, check_request
from paddle_dialog.tasks.sentiment.data import (
    ALWAYS,
    NAMES,
    Review,
    ReviewEncoder,
    SentimentConfig,
    collate,
    contributions,
    tokens_of,
)
from paddle_dialog.text.characters import is_hanzi

# Reviews of emoji alone are read as these: [bad, good] by language.
_EMOJI = (
    "😠😡🤬😤👎💔😞😔🙁☹😟😢😭😣😖😫😩🤢🤮😒🙄💩👿😾💢❌",
    "😀😁😃😄😊🙂😆😍🥰😘😋🤗🤩🥳😎👍👌👏🙌❤🧡💛💚💙💜💕💖💗💯🌟⭐🎉💪✨🌹",
)
_IN_WORDS = {"zh": ("很差，不满意。", "很好，满意。"), "en": ("It was terrible.", "It was great.")}
EXAMPLES = {"zh": "房间很干净，下次还来。", "en": "The room was clean, and we will come back."}


class Judgement(NamedTuple):
    """The judgement of one review."""

    label: int  # 1 good, 0 bad, the likelier one
    probability: float  # of that label
    tokens: list[str]
    weights: np.ndarray  # share of each token in the logit of label 1 [S]; with the bias they add up to it
    clear: bool  # whether that is enough to say so; never where no word is known

    @property
    def shown(self) -> int | None:
        """The label as users see it, None where it is unclear."""
        return self.label if self.clear else None

    def as_dict(self) -> Record:
        """Return the judgement as the command line prints it."""
        return {"label": self.shown, "probability": round(self.probability, 4)}


class SentimentPredictor(Predictor):
    """Judges reviews."""

    def __init__(self, config: SentimentConfig, model: TrainedModel) -> None:
        self.config: SentimentConfig = config
        self.trained = model
        (self._vocabulary,) = model.vocabularies.values()
        self._encoder = ReviewEncoder(config, self._vocabulary)
        make = partial(NumpySentiment, config, len(self._vocabulary))
        self._model = model.fastest(make, PaddleSentiment)

    def predict(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge reviews.

        Raises:
            UserError: a text is empty, or has no word of the model's language.
        """
        check_request(texts)
        return self.judge([Review(self.check(text), 0) for text in texts])

    def check(self, text: str) -> list[str]:
        """Return the tokens of a text, which must have a word of the model's language."""
        language = self.config.language
        tokens = tokens_of(_in_words(text, language), self.config.data.tokens)
        if not tokens:
            sentence = f"the text is empty; give a review, e.g. {EXAMPLES[language]}"
            raise UserError(sentence, f"review_not_{language}")
        if not any(self._in_language(token) for token in tokens):
            reads = "Chinese" if language == "zh" else "English"
            raise UserError(
                f"'{text[:20]}' has no {reads} word, and this model reads {reads} reviews, "
                f"e.g. {EXAMPLES[language]}",
                f"review_not_{language}",
            )
        return tokens

    def _in_language(self, token: str) -> bool:
        """Return whether a token has a hanzi, or, for a model that reads English, a Latin letter."""
        if self.config.language == "zh":
            return any(map(is_hanzi, token))
        return any("a" <= char <= "z" for char in token)

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
        """Answer as JSON records: `{"text": …, "label": 0, 1 or null, "probability": of the likelier label}`."""
        for text, judgement in zip(texts, self.predict(texts), strict=True):
            yield {"text": text, **judgement.as_dict()}

    def format_record(self, record: Record) -> str:
        name = "unclear" if record["label"] is None else NAMES[record["label"]]
        return f"{name}\t{record['probability']:.4f}\t{record['text']}"

    def _judgement(self, review: Review, shares: np.ndarray, length: int, bias: float) -> Judgement:
        """Combine the network's shares [S] of the tokens that it read, and its bias, with the linear classifier's."""
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
        probability = float(1 / (1 + np.exp(-abs(logit))))
        knows = any(token in self._vocabulary for token in review.tokens if self._in_language(token))
        clear = knows and probability >= self.config.unclear_below
        return Judgement(int(logit > 0), probability, review.tokens, weights, clear)


def _in_words(text: str, language: str) -> str:
    """Return words for a review of emoji that are mostly good or mostly bad; any other text as it is."""
    bad, good = (sum(map(text.count, emoji)) for emoji in _EMOJI)
    if bad == good or re.search(r"\w", text):
        return text
    return _IN_WORDS[language][good > bad]


class NumpySentiment:
    """`SentimentNetwork` in NumPy."""

    def __init__(self, config: SentimentConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        require_supported("pooling", config.pooling, "max", "attention")
        model, weights = config.model, Weights(arrays)
        self._table = weights.take_table(
            "embedding.table.weight", vocab_size, model.embedding_size, model.scale_embeddings
        )
        self._encoder = numpy_encoder(model, weights)
        width = self._encoder.output_size
        attends = config.pooling == "attention"
        self._query = NumpyLinear.named(weights, "query", width, 1, bias=False) if attends else None
        self._output = weights.take("output.weight", width, 1)
        self._bias = float(weights.take("output.bias", 1)[0])
        self.linear_table = np.zeros(0, dtype=np.float32)
        if config.linear.buckets:
            self.linear_table = weights.take("linear_table", config.linear.buckets, 1)[:, 0]
        weights.check_all_taken()

    def contributions(self, ids: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, float]:
        """Return what each position of ids [B, S] adds to the logit [B, S], 0 on padding, and the bias."""
        x, _ = self._encoder.read(self._table[ids], lengths)  # [B, S, H]
        real = (np.arange(x.shape[1]) < lengths[:, None])[..., None]  # [B, S, 1]
        if self._query is None:
            weights = real & (x >= np.where(real, x, -np.inf).max(axis=1, keepdims=True))  # [B, S, H]
            weights = weights / weights.sum(axis=1, keepdims=True)
        else:
            scores = self._query(x)[..., 0] + padding_mask(lengths, x.shape[1])  # [B, S]
            weights = softmax(scores)[..., None]
        return ((weights * x * real) @ self._output)[..., 0], self._bias


class PaddleSentiment:
    """`SentimentNetwork` itself, with arrays in and out."""

    def __init__(self, network: Any) -> None:
        self.network = network
        table = network.linear_table
        self.linear_table = np.zeros(0, dtype=np.float32) if table is None else table.numpy()[:, 0]

    def contributions(self, ids: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the same as `NumpySentiment.contributions`."""
        import paddle

        with paddle.no_grad():
            shares, bias = self.network.contributions(paddle.to_tensor(ids), paddle.to_tensor(lengths))
        return shares.numpy(), float(bias.item())
