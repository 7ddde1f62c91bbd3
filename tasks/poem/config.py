"""The settings of the poem task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from paddle_dialog.config.models import CausalLmConfig, LanguageModelConfig
from paddle_dialog.config.schema import DataConfig, DecodingConfig, GenerationConfig
from paddle_dialog.config.typed import Problem, at_least, setting

InputKind = Literal["begin", "acrostic", "title"]
MAX_TITLE = 24  # characters of a title; the rest is cut


@dataclass(frozen=True)
class PoemDataConfig(DataConfig):
    """Texts are joined and cut into windows of one length, so that no batch has padding."""

    max_length: int = at_least(1, 128, "longest poem in characters; longer ones are skipped")
    window: int = at_least(2, 256, "characters of a window")


@dataclass(frozen=True)
class PoemDecodingConfig(DecodingConfig):
    """How poems are drawn."""

    strategy: Literal["beam", "greedy", "sample"] = "sample"
    temperature: float = field(default=0.55, metadata={"above": 0.0})
    max_length: int = at_least(1, 80)


@dataclass(frozen=True)
class VerseConfig:
    """The form and the rules that a poem is held to, and what the input means."""

    form: Literal["五绝", "七绝", "五律", "七律"] | None = setting(
        None, "number and length of lines; null lets the model continue freely"
    )
    input: Literal["begin", "acrostic", "title"] = setting(
        "begin", "what a text asks for: a beginning, the first character of each line (藏头), or a title"
    )
    title: str | None = setting(None, "a title that all poems are written to")
    rhyme: bool = setting(True, "the even lines of a form end in one rhyme, on different characters")
    title_weight: float = at_least(
        0.0,
        0.7,
        "λ: poems to a title are ordered by log p(poem | title) - λ · log p(poem), so that what would suit any "
        "title comes later",
    )


@dataclass(frozen=True)
class PoemConfig(GenerationConfig):
    """A poem recipe."""

    inference_sections: ClassVar[tuple[str, ...]] = ("decoding", "verse")

    model: LanguageModelConfig = field(default_factory=CausalLmConfig)  # type: ignore[assignment]
    data: PoemDataConfig = field(default_factory=PoemDataConfig)
    decoding: PoemDecodingConfig = field(default_factory=PoemDecodingConfig)
    verse: VerseConfig = field(default_factory=VerseConfig)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.decoding.engine == "reference" and (self.verse.form or self.verse.input == "acrostic"):
            yield "decoding.engine", "reference knows no forms; leave verse.form out, or take fast"
        texts = max(self.data.max_length, self.decoding.max_length) + MAX_TITLE + 2
        longest = max(self.data.window, texts)
        if longest > self.model.max_positions:
            yield (
                "model.max_positions",
                f"must be at least {longest} to hold data.window, and a title of {MAX_TITLE} with data.max_length "
                f"and decoding.max_length, and is {self.model.max_positions}",
            )
