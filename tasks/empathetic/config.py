"""The settings of the empathetic task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from paddle_dialog.config.fields import Problem, at_least, rate
from paddle_dialog.config.models import (
    CausalTransformerConfig,
    ConvolutionalTransformerConfig,
    FamilyConfig,
    LstmAttentionConfig,
    TransformerConfig,
)
from paddle_dialog.config.schema import DataConfig, DecodingConfig, ExperimentConfig
from tasks.empathetic.network.adversarial_config import AdversarialConfig
from tasks.empathetic.selection.config import RepliesConfig, RerankConfig


@dataclass
class EmotionConfig:
    """How emotion is seen, predicted and told to the decoder.

    Args:
        prepend: which emotion stands first in the decoder's input: the ``predicted`` one, the annotated one
            (``gold``, an oracle for analysis), or ``none``.
        prepend_form: the predicted emotion as its probability-``weighted`` mean embedding, or that of the
            ``argmax``.
        head: predict from the ``cls`` position or from an ``attention``-pooled mean of all positions.
        weight: λ of the emotion's cross-entropy in the loss.
        roles: mark each word as the speaker's or the listener's.
        hints: mark the words that the lexicon knows.
        lexicon: ``nrc``, or a file of words; see ``EmotionLexicon.load``.
        ngram_buckets: rows of the linear classifier of hashed word and character n-grams, which is fitted to the
            training contexts before the network is trained; 0 is none.
        small_talk: learn from the small talk that ships with the task which contexts have no emotion; there the
            probabilities become alike. For contexts of n-grams only.
        character_weight: what n-grams of characters count there beside those of words.
        encoder_share: factor of the other classifier's logits, which reads the encoder's outputs, where they are
            added to those of the n-grams; it fits the training contexts far better than new ones.
        situations: the situation sentences of the training data are further texts for the n-gram classifier.
    """

    prepend: Literal["predicted", "gold", "none"] = "predicted"
    prepend_form: Literal["weighted", "argmax"] = "weighted"
    head: Literal["cls", "attention"] = "attention"
    weight: float = at_least(0.0, 1.0)
    roles: bool = True
    hints: bool = True
    lexicon: str = "nrc"
    ngram_buckets: int = at_least(0, 0)
    small_talk: bool = False
    character_weight: float = rate(1.0)
    encoder_share: float = rate(0.05)
    situations: bool = False


@dataclass
class GeneratorConfig:
    """The output layer: copying words of the context, and a temperature of the vocabulary's scores.

    Attributes:
        context_weight: what a word of the speaker's own turns counts in the loss beside a word of the reply; 0
            learns replies alone. A causal model learns each turn of a conversation once in an epoch.
    """

    pointer: bool = True
    context_weight: float = at_least(0.0, 0.0)
    temperature: float = field(default=1.0, metadata={"above": 0.0})


@dataclass
class SelectionConfig:
    """How replies are chosen by vectors of contexts and replies; needs a causal model.

    Attributes:
        size: of the vectors; 0 is no selection.
        weight: of its loss beside the reply's.
    """

    size: int = at_least(0, 0)
    weight: float = at_least(0.0, 1.0)


@dataclass
class EmpatheticDataConfig(DataConfig):
    """Contexts longer than ``max_length`` tokens keep their newest turns; nothing is skipped.

    Args:
        max_target_length: tokens of a training reply; the rest is cut.
        unknown_rate: share of the words seen once that a training epoch shows as ``<unk>``, so that it is trained.
        more: a file of further conversations, ``{"turns": [turn, …]}`` a line, to learn from beside ``train``.
        more_min_count: how often a word of the further conversations alone is seen before it has an entry.
        changed_subjects: share of the training examples that are shown once more after the end of another
            conversation, so that the newest turns are seen to count.
        small_talk: how often an epoch has the small talk that ships, greetings and thanks and the like.
        mark_turns: a mark stands before each turn of a context, so that the network knows where it begins.
    """

    max_length: int = at_least(1, 96)
    overlong: Literal["truncate"] = "truncate"
    max_target_length: int = at_least(1, 64)
    unknown_rate: float = rate(0.3)
    more: str | None = None
    more_min_count: int = at_least(1, 10)
    changed_subjects: float = rate(0.0)
    small_talk: int = at_least(0, 0)
    mark_turns: bool = False


@dataclass
class EmpatheticDecodingConfig(DecodingConfig):
    """How replies are searched for.

    Args:
        groups: parts of the beam that avoid each other's words (diverse beam search); 1 is plain beam search.
            Like the beam's size it is for ``strategy: beam`` alone.
        diversity_penalty: nats a word costs for each earlier group that chose it at the same step.
        no_repeat_ngram: no n-gram of this size stands twice in a reply; 0 allows it.
        min_length: tokens a reply has at least.
        clear_emotion: the likeliest emotion is named if its probability is at least this; else the answer says that
            no emotion is clear (``null`` in JSON), as after a greeting. 0 names it always. Replies and the accuracy
            of the emotions stay the same.
    """

    beam_size: int = at_least(1, 5)
    length_penalty: Literal["none", "average", "gnmt"] = "average"
    max_length: int = at_least(1, 40)
    engine: Literal["fast"] = "fast"
    no_repeat_ngram: int = at_least(0, 3)
    min_length: int = at_least(0, 1)
    groups: int = at_least(1, 1)
    diversity_penalty: float = at_least(0.0, 0.5)
    clear_emotion: float = rate(0.0)
    rerank: RerankConfig = field(default_factory=RerankConfig)

    def problems(self) -> Iterator[Problem]:
        """Yields settings that contradict each other."""
        yield from super().problems()
        if self.min_length > self.max_length:
            yield "min_length", f"must not exceed max_length ({self.max_length}), and is {self.min_length}"
        if self.strategy == "beam" and self.beam_size % self.groups:
            yield "groups", f"must divide beam_size ({self.beam_size}), and {self.groups} does not"


@dataclass
class EmpatheticConfig(ExperimentConfig):
    """An empathetic recipe."""

    inference_sections: ClassVar[tuple[str, ...]] = ("decoding", "replies")

    model: FamilyConfig = field(default_factory=TransformerConfig)  # type: ignore[assignment]
    data: EmpatheticDataConfig = field(default_factory=EmpatheticDataConfig)
    decoding: EmpatheticDecodingConfig = field(default_factory=EmpatheticDecodingConfig)
    emotion: EmotionConfig = field(default_factory=EmotionConfig)
    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    replies: RepliesConfig = field(default_factory=RepliesConfig)
    adversarial: AdversarialConfig = field(default_factory=AdversarialConfig)

    def problems(self) -> Iterator[Problem]:
        """Yields settings of different sections that contradict each other."""
        yield from super().problems()
        if self.emotion.small_talk and not self.emotion.ngram_buckets:
            yield (
                "emotion.small_talk",
                "needs the n-gram classifier; set emotion.ngram_buckets, e.g. to 120000",
            )
        model = self.model
        if self.data.more is not None and self.emotion.prepend == "gold":
            yield (
                "data.more",
                "these conversations have no emotion, which emotion.prepend: gold needs; leave it out",
            )
        if self.selection.size and not isinstance(model, CausalTransformerConfig):
            yield "selection.size", "needs model.name: causal_transformer; set it to 0"
        yield from self._selection_problems()
        if isinstance(model, LstmAttentionConfig):
            if self.emotion.head == "cls" and not model.bidirectional:
                yield (
                    "emotion.head",
                    "cls is the first position, where a forward encoder has read nothing yet; "
                    "take attention, or model.bidirectional: true",
                )
            if self.generator.context_weight:
                yield "generator.context_weight", "needs model.name: causal_transformer; set it to 0"
            return
        if isinstance(model, TransformerConfig) and model.aligned_input:
            yield "model.aligned_input", "context and reply do not correspond word by word; leave it out"
        if isinstance(model, CausalTransformerConfig):
            yield from self._causal_problems(model)
            return
        if self.generator.context_weight:
            yield "generator.context_weight", f"needs a causal model, and {model.name} sees the whole context"
        limits = {"data.max_target_length": self.data.max_target_length}
        if isinstance(model, ConvolutionalTransformerConfig):  # the others are checked above
            limits["data.max_length"] = self.data.max_length
            limits["decoding.max_length"] = self.decoding.max_length
        for key, length in limits.items():
            if length >= model.max_positions:
                yield key, f"must be below model.max_positions ({model.max_positions}), and is {length}"

    def _selection_problems(self) -> Iterator[Problem]:
        replies, needs = self.replies, "needs a model that chooses replies (selection.size above 0)"
        if not self.selection.size:
            if replies.store or (replies.file is not None and replies.store is None):
                yield "replies.store", f"{needs}; set it to false"
            if self.decoding.rerank.selection:
                yield "decoding.rerank.selection", f"{needs}; set it to 0"
        if replies.store is False and not replies.generate:
            yield "replies.generate", "is false, and so is replies.store; then nothing is left to answer with"

    def _causal_problems(self, model: CausalTransformerConfig) -> Iterator[Problem]:
        reply = max(self.data.max_target_length, self.decoding.max_length)
        if self.data.max_length + reply + 2 > model.max_positions:
            yield (
                "model.max_positions",
                f"must hold data.max_length ({self.data.max_length}), the longest reply ({reply}) and two "
                f"marks, and is {model.max_positions}",
            )
        if self.emotion.head == "cls":
            yield (
                "emotion.head",
                "cls is the first position, where a causal model has read nothing yet; take attention",
            )
        if self.generator.context_weight and not self.data.mark_turns:
            yield (
                "data.mark_turns",
                "must be true where generator.context_weight is above 0: a turn's first word is learned at its mark",
            )
