"""The settings of the translation task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from paddle_dialog.config.schema import DataConfig, DecodingConfig, GenerationConfig
from paddle_dialog.config.typed import Problem, at_least, setting


@dataclass(frozen=True)
class TranslationDataConfig(DataConfig):
    """Where the pairs come from and what their tokens are."""

    tokens: Literal["characters", "words"] = setting(
        "characters",
        "what a text is cut into; `words` are what blanks separate, subwords of such files included",
    )
    reverse: bool = setting(False, "translate the second column into the first")


@dataclass(frozen=True)
class TranslationDecodingConfig(DecodingConfig):
    """How translations are searched for."""

    no_repeat_ngram: int = at_least(
        0, 0, "no n-gram of this size is written twice in a sentence's translation; 0 allows repetition"
    )


@dataclass(frozen=True)
class TranslationConfig(GenerationConfig):
    """A translation recipe."""

    data: TranslationDataConfig = field(default_factory=TranslationDataConfig)
    decoding: TranslationDecodingConfig = field(default_factory=TranslationDecodingConfig)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.training.label_smoothing:
            yield "training.label_smoothing", "has no effect on this task's loss; leave it at 0"
        if self.decoding.engine == "reference" and self.decoding.no_repeat_ngram:
            yield (
                "decoding.engine",
                "reference forbids no n-gram; set decoding.no_repeat_ngram to 0, or take fast",
            )
