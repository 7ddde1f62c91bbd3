"""The settings of the sentiment task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from paddle_dialog.config.schema import DataConfig, ExperimentConfig
from paddle_dialog.config.typed import Problem, at_least, rate, setting


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
