"""The settings of the couplet task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from paddle_dialog.config.fields import Problem, at_least
from paddle_dialog.config.schema import ExperimentConfig


@dataclass
class RulesConfig:
    """Which rules of form the 下联 is held to; `tasks.couplet.rules.constraints` says what each means.

    Args:
        enabled: False drops all of them.
        same_length: the 下联 has as many characters as the 上联.
        copy_punctuation: punctuation stands where the 上联 has it, the same marks, and nowhere else.
        mirror_repeats: hanzi are repeated at exactly the positions where the 上联 repeats them.
        no_shared_character: no hanzi of the 上联 is used.
        final_tone: the 下联 ends level (平), or oblique (仄) where the 上联 can only end level.
        tone_weight: nats taken off a hanzi whose tone cannot oppose the one above it; 0 switches it off.
        banned_words: a UTF-8 file with one word a line, of one or more characters; they are never written.
    """

    enabled: bool = True
    same_length: bool = True
    copy_punctuation: bool = True
    mirror_repeats: bool = True
    no_shared_character: bool = True
    final_tone: bool = True
    tone_weight: float = at_least(0.0, 1.0)
    banned_words: str | None = None


@dataclass
class RerankConfig:
    """Weights of the sum that orders the candidates; with all but ``model`` at 0 the search's order stays.

    Args:
        model: of the log-probability per token.
        reverse: of log p(上联 | 下联) per token under the model of ``reverse_weights``.
        tone_opposed: of the share of positions with opposed tones, in 0–1.
        consensus: of the mean share of characters that the other candidates have at the same position, in 0–1:
            what many look-alikes of the n-best agree on is seldom an accident of the search.
        candidates: how many the search hands over; at least the number asked for.
        reverse_weights: a bundle trained on pairs with 上联 and 下联 swapped.
    """

    model: float = at_least(0.0, 1.0)
    reverse: float = at_least(0.0, 0.0)
    tone_opposed: float = at_least(0.0, 0.0)
    consensus: float = at_least(0.0, 0.0)
    candidates: int = at_least(1, 10)
    reverse_weights: str | None = None

    @property
    def is_active(self) -> bool:
        """Whether anything beside the model's own score counts."""
        return bool(self.reverse or self.tone_opposed or self.consensus)

    def problems(self) -> Iterator[Problem]:
        """Yields settings that contradict each other."""
        if self.reverse and self.reverse_weights is None:
            yield "reverse", "needs reverse_weights, a bundle trained on swapped pairs"


@dataclass
class CoupletConfig(ExperimentConfig):
    """A couplet recipe: what all tasks share, the rules of form and the order of the candidates."""

    inference_sections: ClassVar[tuple[str, ...]] = ("decoding", "rules", "rerank")

    rules: RulesConfig = field(default_factory=RulesConfig)
    rerank: RerankConfig = field(default_factory=RerankConfig)

    def problems(self) -> Iterator[Problem]:
        """Yields settings of different sections that contradict each other."""
        yield from super().problems()
        if self.decoding.engine == "reference" and self.rules.enabled:
            yield (
                "decoding.engine",
                "reference knows no rules; add `rules: {enabled: false}` or take engine: fast",
            )
