"""The settings of the ranker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from paddle_dialog.config.fields import Problem, at_least, setting
from paddle_dialog.config.models import CausalTransformerConfig
from tasks.empathetic.config import EmpatheticConfig


@dataclass(frozen=True)
class CandidateConfig:
    """The wrong replies that stand beside a context's own."""

    near: int = at_least(0, 3, "replies to the contexts most alike (TF-IDF), of other conversations")
    neighbours: int = at_least(1, 20, "how many such contexts these are drawn from")
    same_emotion: int = at_least(0, 2, "replies to contexts of the same emotion")
    spliced: int = at_least(0, 1, "the own reply's first words with another's last")
    generated: int = at_least(0, 0, "replies that a generator wrote to this context; needs `file`")
    file: str | None = setting(
        None, "JSON lines with `context` and `predictions`, as tools/predict.py --json prints them"
    )

    @property
    def count(self) -> int:
        """Candidates of a context, its own reply included."""
        return 1 + self.near + self.same_emotion + self.spliced + self.generated

    def problems(self) -> Iterator[Problem]:
        """Yield settings that contradict each other."""
        if self.generated and self.file is None:
            yield "file", "is needed for generated replies; name one, or set generated to 0"
        if self.count < 2:
            yield "near", "leaves no wrong reply to learn from; set it to 1 or more"
        if self.near > self.neighbours:
            yield "neighbours", f"must be at least near ({self.near}), and is {self.neighbours}"


@dataclass(frozen=True)
class RankerConfig(EmpatheticConfig):
    """A recipe of the ranker, which uses only `model`, `data` and `emotion.roles` of a generator's keys."""

    candidates: CandidateConfig = field(default_factory=CandidateConfig)

    def problems(self) -> Iterator[Problem]:
        """Yield settings of different sections that contradict each other."""
        yield from super().problems()
        if not isinstance(self.model, CausalTransformerConfig):
            yield "model.name", "a ranker is a causal_transformer"
            return
        if self.model.activation != "relu":
            yield "model.activation", f"must be relu for a ranker, and is {self.model.activation}"
        unused = {
            "generator.pointer": (self.generator.pointer, "copies nothing; set it to false"),
            "generator.context_weight": (self.generator.context_weight, "learns no words; set it to 0"),
            "emotion.hints": (self.emotion.hints, "reads no hints; set it to false"),
            "emotion.ngram_buckets": (self.emotion.ngram_buckets, "reads no n-grams; set it to 0"),
            "selection.size": (self.selection.size, "compares no vectors; set it to 0"),
            "adversarial.semantic": (self.adversarial.semantic, "writes no words to judge; set it to 0"),
            "adversarial.emotional": (self.adversarial.emotional, "writes no words to judge; set it to 0"),
        }
        for key, (value, why) in unused.items():
            if value:
                yield key, f"is {str(value).lower()}, but a ranker {why}"
        parts = 2 if self.candidates.spliced else 1  # a spliced reply can be as long as two
        longest = 1 + self.data.max_length + parts * self.data.max_target_length + 2
        if longest > self.model.max_positions:
            yield (
                "model.max_positions",
                f"must hold a context, {parts} times data.max_target_length and three marks ({longest} tokens), "
                f"and is {self.model.max_positions}",
            )
