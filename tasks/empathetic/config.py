"""The settings of the empathetic task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from paddle_dialog.config.models import (
    CausalTransformerConfig,
    FamilyConfig,
    PretrainedConfig,
    TransformerConfig,
)
from paddle_dialog.config.schema import DataConfig, DecodingConfig, GenerationConfig
from paddle_dialog.config.typed import Problem, at_least, rate, setting, shown

# What the networks of this project read or learn, and a pre-trained model does not.
_OF_PRETRAINED = {
    "emotion.prepend_form": "argmax",
    "emotion.hints": False,
    "emotion.ngram_buckets": 0,
    "generator.pointer": False,
    "generator.context_weight": 0.0,
    "data.unknown_rate": 0.0,
    "data.mark_turns": True,
}


@dataclass(frozen=True)
class EmotionConfig:
    """How emotion is recognised; the decoder reads the predicted one first."""

    head: Literal["cls", "attention"] = setting(
        "attention", "predict from the first position, or from an attention-pooled mean of all positions"
    )
    prepend_form: Literal["weighted", "argmax"] = setting(
        "weighted",
        "the predicted emotion as the mean of all embeddings by probability, or as the likeliest one's",
    )
    weight: float = at_least(0.0, 1.0, "λ, the weight of the emotion's cross-entropy in the loss")
    hints: bool = setting(True, "mark the words that the lexicon knows")
    lexicon: str = setting(
        "nrc",
        "the emotion lexicon: `nrc` (of the package NRCLex), a file with a word a line, or JSON with a list of "
        "categories for each word",
    )
    ngram_buckets: int = at_least(
        0,
        0,
        "rows of a linear classifier of hashed word and character n-grams, fitted to the training contexts before "
        "the network is trained; 0 is none",
        maximum=1 << 20,
    )
    small_talk: bool = setting(
        False, "learn from the small talk that ships which contexts have no emotion; needs `ngram_buckets`"
    )
    character_weight: float = rate(1.0, "weight of the n-grams of characters, where those of words have 1")
    encoder_weight: float = rate(
        0.05, "factor of the encoder's own logits where they are added to those of the n-grams"
    )
    situations: bool = setting(
        False, "fit the n-gram classifier to the training data's situation sentences too"
    )


@dataclass(frozen=True)
class GeneratorConfig:
    """The output layer."""

    pointer: bool = setting(True, "the generator can copy words of the context")
    context_weight: float = at_least(
        0.0,
        0.0,
        "weight in the loss of a word of the speaker's turns, where one of the reply has 1; 0 learns replies alone; "
        "needs a causal model, which learns each turn of a conversation once in an epoch",
    )
    temperature: float = setting(1.0, "divides the scores of the vocabulary", above=0.0)


@dataclass(frozen=True)
class EmpatheticDataConfig(DataConfig):
    """Where the dialogues come from and how they become batches."""

    max_length: int = at_least(1, 96, "longest context in tokens; of a longer one the newest turns are kept")
    max_target_length: int = at_least(1, 64, "longest training reply in tokens; longer ones are cut")
    unknown_rate: float = rate(
        0.3, "share of the words seen once that an epoch shows as `<unk>`, so that it is trained"
    )
    more: str | None = setting(
        None, 'a file of further conversations to learn from, `{"turns": [turn, …]}` a line'
    )
    more_min_count: int = at_least(
        1, 10, "how often a word must occur that only the further conversations have"
    )
    pieces: str | None = setting(
        None,
        "file of a SentencePiece model that cuts Chinese into pieces; null learns one from the training text",
    )
    piece_count: int = at_least(100, 8000, "how many pieces are learned", maximum=1_000_000)
    mark_turns: bool = setting(False, "a mark before each turn of a context")


@dataclass(frozen=True)
class RepliesConfig:
    """What a judge chooses the reply from."""

    judge: bool | None = setting(
        None,
        "choose the reply by the bundle's judge: true refuses a bundle that has none, false leaves the generator "
        "alone, null takes what the bundle has",
    )
    written: int = at_least(
        1, 12, "how many of the replies that were written for this project are candidates", maximum=1000
    )
    reflections: int = at_least(
        0,
        12,
        "how many replies that mirror what the speaker said, in frames of this project, are candidates",
        maximum=1000,
    )


@dataclass(frozen=True)
class CareConfig:
    """The fixed sentence that names professional help to somebody in danger."""

    answers: str | None = setting(
        None,
        "a YAML file with the sentence in each language, `en` and `zh`; null takes what ships in "
        "tasks/empathetic/texts",
    )


@dataclass(frozen=True)
class EmpatheticDecodingConfig(DecodingConfig):
    """How replies are searched for."""

    beam_size: int = at_least(1, 5, maximum=1000)
    length_penalty: Literal["none", "average", "gnmt"] = "average"
    max_length: int = at_least(1, 40)
    engine: Literal["fast"] = setting("fast", "the only one here")
    no_repeat_ngram: int = at_least(
        0, 3, "no n-gram of this size occurs twice in a reply; 0 allows repetition"
    )
    min_confidence: float = rate(
        0.0,
        "least probability of an emotion that is named; below it the answer says that no emotion is clear (null in "
        "JSON); 0 always names one",
    )


@dataclass(frozen=True)
class EmpatheticConfig(GenerationConfig):
    """An empathetic recipe."""

    inference_sections: ClassVar[tuple[str, ...]] = ("decoding", "replies", "care")

    language: Literal["en", "zh"] = setting("en", "of the conversations: English or Chinese")
    model: FamilyConfig | PretrainedConfig = field(default_factory=TransformerConfig)  # type: ignore[assignment]
    data: EmpatheticDataConfig = field(default_factory=EmpatheticDataConfig)
    decoding: EmpatheticDecodingConfig = field(default_factory=EmpatheticDecodingConfig)
    emotion: EmotionConfig = field(default_factory=EmotionConfig)
    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    replies: RepliesConfig = field(default_factory=RepliesConfig)
    care: CareConfig = field(default_factory=CareConfig)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.language == "zh" and self.emotion.hints:
            yield "emotion.hints", "the lexicon is English; set it to false where language is zh"
        if self.emotion.small_talk and not self.emotion.ngram_buckets:
            yield (
                "emotion.small_talk",
                "needs the n-gram classifier; set emotion.ngram_buckets, e.g. to 120000",
            )
        model, longest = self.model, self.data.max_target_length
        if getattr(model, "sampled_words", 0) and self.generator.temperature != 1.0:
            yield "model.sampled_words", "estimates the plain softmax; set generator.temperature: 1"
        if isinstance(model, PretrainedConfig):
            yield from self._pretrained_problems()
            return
        is_causal = isinstance(model, CausalTransformerConfig)
        if self.emotion.head == "cls" and (is_causal or not getattr(model, "bidirectional", True)):
            yield (
                "emotion.head",
                "cls is the first position, where a model that reads forward has read nothing yet; take attention",
            )
        if isinstance(model, CausalTransformerConfig):
            yield from self._causal_problems(model)
        elif self.generator.context_weight:
            yield "generator.context_weight", "needs model.name: causal_transformer; set it to 0"
        if isinstance(model, TransformerConfig):
            if model.aligned_input:
                yield "model.aligned_input", "context and reply do not correspond word by word; leave it out"
            if longest >= model.max_positions:
                limit = f"must be below model.max_positions ({model.max_positions}), and is {longest}"
                yield "data.max_target_length", limit

    def _pretrained_problems(self) -> Iterator[Problem]:
        for key, needed in _OF_PRETRAINED.items():
            section, _, name = key.partition(".")
            if getattr(getattr(self, section), name) != needed:
                yield key, f"must be {shown(needed)} where model.name is pretrained"

    def _causal_problems(self, model: CausalTransformerConfig) -> Iterator[Problem]:
        reply = max(self.data.max_target_length, self.decoding.max_length)
        if self.data.max_length + reply + 2 > model.max_positions:
            yield (
                "model.max_positions",
                f"must hold data.max_length ({self.data.max_length}), the longest reply ({reply}) and two "
                f"marks, and is {model.max_positions}",
            )
        if self.generator.context_weight and not self.data.mark_turns:
            yield (
                "data.mark_turns",
                "must be true where generator.context_weight is above 0: a turn's first word is learned at its mark",
            )
