"""The settings of the couplet task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig, PretrainedConfig, TransformerConfig
from paddle_dialog.config.schema import DataConfig, GenerationConfig
from paddle_dialog.config.typed import Problem, at_least, rate, setting

MAX_THEME_CHARACTERS = 4  # of a theme, which follow the mark of a template


@dataclass(frozen=True)
class CoupletDataConfig(DataConfig):
    """Where the couplets come from, what a network learns of them, and how they become batches."""

    reverse: float = rate(0.0, "share of the pairs that are also learned from 下联 to 上联")
    compose: float = rate(
        0.0,
        "share of the 上联 that are also learned from a template: blanks, few characters, words of a theme",
    )
    verse: str | None = setting(
        None, "a file of antithetical lines of classical verse, learned beside the couplets under a mark"
    )

    @property
    def has_uses(self) -> bool:
        """Whether anything but 上联 to 下联 is learned."""
        return bool(self.reverse or self.compose or self.verse)

    @property
    def longest_source(self) -> int:
        """Most tokens that the network reads at once in training: a line, and the marks and theme of its use."""
        marks = 1 + MAX_THEME_CHARACTERS if self.compose else 1 if self.reverse else 0
        return self.max_length + marks + (self.verse is not None)


@dataclass(frozen=True)
class PreferencesConfig:
    """What is learned from rated answers in addition to the corpus (direct preference optimisation)."""

    ratings: str | None = setting(
        None, "a file of ratings of answers by the weights of `training.start_from`"
    )
    least_gap: float = setting(
        1.0, "least difference of two ratings of one input that makes an answer the better one", above=0.0
    )
    own_rating: float | None = setting(
        None,
        "rating of the corpus's own 下联 among the answers to its longer 上联; null leaves it out",
        minimum=-1000,
    )


@dataclass(frozen=True)
class RulesConfig:
    """The rules of form that the 下联 is held to while it is searched for."""

    enabled: bool = setting(True, "false drops all rules")
    same_length: bool = setting(True, "as many characters as the 上联")
    copy_punctuation: bool = setting(
        True, "the marks of the 上联 at the same places, a comma for a question inside it; none elsewhere"
    )
    mirror_repeats: bool = setting(True, "characters repeat exactly where the 上联 repeats them")
    no_shared_character: bool = setting(True, "no character of the 上联")
    final_tone: bool = setting(True, "ends level (平); oblique (仄) only where the 上联 can only end level")
    tone_weight: float = at_least(
        0.0,
        1.0,
        "nats taken off a character whose tone cannot oppose the one above it; 0 is off",
        maximum=1000,
    )


@dataclass(frozen=True)
class ChoiceConfig:
    """How the candidates differ where several are asked for of a beam; the best one is the same in any case."""

    distance: float = rate(
        1 / 3,
        "least share of the free characters (no punctuation, no locked ones) in which any two candidates differ; "
        "0 gives the list of the beam, whose candidates differ in a character or two",
    )


@dataclass(frozen=True)
class CoupletRerankConfig:
    """How candidates are ordered by both directions of the model; with `reverse` at 0 the search's order stays."""

    reverse: float = at_least(
        0.0,
        0.0,
        "weight of log p(given line | candidate) per token beside the candidate's own; the weights must know both "
        "directions",
    )
    candidates: int = at_least(
        1, 10, "candidates the search hands over, at least the number asked for", maximum=1000
    )


@dataclass(frozen=True)
class CoupletConfig(GenerationConfig):
    """A couplet recipe: what all tasks share, the rules of form and the order of the candidates."""

    inference_sections: ClassVar[tuple[str, ...]] = ("decoding", "rules", "choice", "rerank")

    model: ModelConfig | PretrainedConfig = field(default_factory=LstmAttentionConfig)  # type: ignore[assignment]
    data: CoupletDataConfig = field(default_factory=CoupletDataConfig)
    preferences: PreferencesConfig = field(default_factory=PreferencesConfig)
    rules: RulesConfig = field(default_factory=RulesConfig)
    choice: ChoiceConfig = field(default_factory=ChoiceConfig)
    rerank: CoupletRerankConfig = field(default_factory=CoupletRerankConfig)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if getattr(self.model, "sampled_words", 0) and self.preferences.ratings is not None:
            yield "model.sampled_words", "scores the true line alone; leave preferences.ratings out"
        if isinstance(self.model, TransformerConfig) and self.data.longest_source > self.model.max_positions:
            yield (
                "model.max_positions",
                f"must hold data.max_length ({self.data.max_length}) and the marks of the uses, "
                f"{self.data.longest_source} in all, and is {self.model.max_positions}",
            )
        if self.preferences.ratings is not None and self.training.start_from is None:
            yield (
                "preferences.ratings",
                "are of answers by weights; name those weights by training.start_from",
            )
        if self.decoding.engine == "reference" and isinstance(self.model, PretrainedConfig):
            yield "decoding.engine", "reference runs the families of this project; take fast"
        elif self.decoding.engine == "reference" and self.rules.enabled:
            yield (
                "decoding.engine",
                "reference knows no rules; add `rules: {enabled: false}` or take engine: fast",
            )
