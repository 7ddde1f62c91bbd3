"""Empathetic replies over HTTP."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from paddle_dialog.data.files import Record
from paddle_dialog.decoding.search import SearchOptions
from paddle_dialog.errors import UserError
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import (
    ANSWERED,
    LANGUAGE,
    Attention,
    Candidate,
    Count,
    Endpoint,
    Job,
    NoResult,
    RequestModel,
    bounded,
    changed,
)
from paddle_dialog.tasks.empathetic.config import EmpatheticDecodingConfig
from paddle_dialog.tasks.empathetic.data.dialogue import HAS_TEXT, check_alternation, clean_turn
from paddle_dialog.tasks.empathetic.data.emotions import CHINESE_NAMES, KNOWN_LABELS, emotion_id
from paddle_dialog.tasks.empathetic.data.language import forget_chunks
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.replies import Act, Answer
from paddle_dialog.text.characters import LanguageName
from paddle_dialog.text.vocabulary import Vocabulary

EXAMPLE = "I lost my dog yesterday."
STEPS = 30  # tokens of a reply, as a rule
REMEMBERED = 10_000  # cached words or turns; more would fill the memory and slow down new words
_AS_MANY: list[Any] = [  # greedy search gives one reply
    {"properties": {"n_best": {"maximum": 1}}},
    {"properties": {"decoding": {"properties": {"strategy": {"enum": ["beam", "sample", None]}}}}},
]
_decoding = partial(changed, EmpatheticDecodingConfig)


class ReplyDecoding(RequestModel):
    """Settings of the search that differ from the server's."""

    strategy: Literal["beam", "greedy", "sample"] | None = _decoding("strategy")
    beam_size: int | None = _decoding("beam_size", ge=1)
    length_penalty: Literal["none", "average", "gnmt"] | None = _decoding("length_penalty")
    alpha: float | None = _decoding("alpha", ge=0, le=10)
    temperature: float | None = _decoding("temperature", ge=0.05, le=10)
    top_k: int | None = _decoding("top_k", ge=0, le=100_000)
    top_p: float | None = _decoding("top_p", gt=0, le=1)
    no_repeat_ngram: int | None = _decoding("no_repeat_ngram", ge=0, le=20)
    seed: int | None = Field(None, ge=0, le=2**31 - 1, description="Of the draws of sample.")


class ReplyRequest(RequestModel):
    """A conversation to reply to."""

    model_config = ConfigDict(json_schema_extra={"anyOf": _AS_MANY})

    context: list[str] = Field(
        min_length=1,
        description="Its turns, oldest first; the speaker has the first and the last.",
        examples=[[EXAMPLE]],
    )
    emotion: str | None = Field(
        None,
        description="Replaces the model's own prediction; a Chinese model knows eight, and their Chinese names.",
        examples=["sad"],
        json_schema_extra={"enum": [*KNOWN_LABELS, None]},
    )
    language: LanguageName | None = LANGUAGE
    n_best: Count = Field(1, ge=1, description="How many replies, best first.")
    decoding: ReplyDecoding | None = None
    attention: bool = Field(False, description="Whether to return what the best reply attended to.")


class ReplyCandidate(Candidate):
    """One reply."""

    origin: Literal["written", "reflected", "model", "care"] = Field(
        description="Who wrote it: the model that answers; this project beforehand (written); or the speaker, whose "
        "words the reply says back (reflected). care is a fixed sentence to somebody in danger."
    )


class ReplyAnswer(BaseModel):
    """An emotion and replies."""

    context: list[str]
    emotion: str | None = Field(
        description="The likeliest emotion, or the one that was given; null where none is likely enough to be named, "
        "as after a greeting."
    )
    emotions: dict[str, float] = Field(
        description="Probabilities of the likeliest five, as predicted; none with care."
    )
    predictions: list[ReplyCandidate]
    act: Act | None = Field(
        None, description="What the newest turn is; null with care and where the generator answers alone."
    )
    care: bool = Field(
        False,
        description="Whether the newest turn speaks of danger (docs/care.md); no model wrote the answer then.",
    )
    hint: str | None = Field(
        None, description="A sentence for a speaker whose language the model does not read."
    )
    language: LanguageName | None = ANSWERED
    attention: Attention | None = Field(None, description="Only where it was asked for.")


class ReplyEndpoint(Endpoint[ReplyRequest]):
    """Predicts what the speaker of a conversation feels and writes the listener's next turn."""

    task = "empathetic"
    path = "/v1/reply"
    summary = "An empathetic reply"
    page = Path(__file__).parent / "page"
    request_model, answer_model = ReplyRequest, ReplyAnswer
    predictor: EmpatheticPredictor

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits
        # `prepare` checks this, with a plainer message.
        turn = {"minLength": 1, "maxLength": limits.characters, "pattern": HAS_TEXT}
        turns = list[Annotated[str, Field(json_schema_extra=turn)]]
        odd: Any = {"anyOf": [{"minItems": n, "maxItems": n} for n in range(1, limits.turns + 1, 2)]}
        context = (turns, Field(max_length=limits.turns, json_schema_extra=odd))
        beam = bounded(ReplyDecoding, limits, beam_size=(int | None, Field(le=limits.beam_size)))
        self.request_model = bounded(ReplyRequest, limits, context=context, decoding=(beam | None, Field()))

    def details(self) -> Record:
        predictor = self.predictor
        predictor.answer([[EXAMPLE]], emotions=[predictor.emotions[0]])
        return {
            "language": self.language,
            "emotions": list(predictor.emotions),
            "chinese_names": CHINESE_NAMES[predictor.language.name],
            "turns": self._limits.turns,
        }

    def texts(self, request: ReplyRequest) -> Iterable[str]:
        return request.context

    def takes_any_words(self, request: ReplyRequest) -> bool:
        """Return whether the newest turn speaks of danger: nobody who does so is turned away for a word."""
        return self.predictor.read_newest_turn(request.context).care != "none"

    def prepare(self, request: ReplyRequest) -> Job:
        # A turn that speaks of danger is answered however long it is.
        longest = self._limits.body_bytes if self.takes_any_words(request) else self._limits.characters
        turns = [_checked(turn, number, longest) for number, turn in enumerate(request.context, start=1)]
        try:
            check_alternation(turns)
        except ValueError as error:
            raise UserError(str(error)) from error
        emotion = None
        if request.emotion is not None:
            known = self.predictor.emotions
            emotion = known[emotion_id(request.emotion, known)]
        config = self.predictor.config
        changes = {} if request.decoding is None else request.decoding.model_dump(exclude_none=True)
        seed = changes.pop("seed", config.seed)
        decoding = dataclasses.replace(config.decoding, **changes)
        SearchOptions.of(decoding, request.n_best, seed, [])  # checks the values
        cost = max(decoding.beam_size, request.n_best) * STEPS
        return Job((turns, emotion, request.attention), (request.n_best, seed, decoding), cost)

    def answer(
        self,
        items: Sequence[tuple[list[str], str | None, bool]],
        settings: tuple[int, int, EmpatheticDecodingConfig],
    ) -> list[Record | NoResult]:
        predictor, (n_best, seed, decoding) = self.predictor, settings
        contexts, emotions = [turns for turns, *_ in items], [emotion for _, emotion, _ in items]
        found = predictor.answer(
            contexts, n_best, emotions, decoding, seed, lambda text: not self.words.finds(text)
        )
        answers = [self._record(*item, answer) for item, answer in zip(items, found, strict=True)]
        encoder, turns = predictor.encoder, predictor.language.tokens_of
        if max(len(encoder.words()), turns.cache_info().currsize) > REMEMBERED:
            encoder.forget()
            turns.cache_clear()
            forget_chunks()
        return answers

    def _record(
        self, turns: list[str], emotion: str | None, attention: bool, answer: Answer
    ) -> Record | NoResult:
        if not answer.predictions:
            return self.all_banned("reply that was found", "say it differently")
        record = answer.as_dict()
        if attention and not answer.care:
            record["attention"] = self._attention(turns, emotion, answer.predictions[0].tokens)
        return record | {"language": self.language}

    def _attention(self, turns: list[str], emotion: str | None, tokens: Sequence[str]) -> Record:
        """Return attention [T, S] of a reply's words, the end included, over the context."""
        encoder = self.predictor.encoder
        (context,) = self.predictor.encode([turns], [emotion])
        source, extended = context.packed
        target = encoder.target(encoder.numbers(tokens), extended)  # [T - 1]
        weights = self.predictor.attention_weights(source, np.append(Vocabulary.bos_id, target))  # [T, S]
        words = encoder.words()
        return {
            "source": ["<cls>", *(words[number] for number in encoder.context(context.turns).words)],
            "target": [*tokens, "<eos>"],
            "weights": [[round(float(weight), 4) for weight in row] for row in weights],
        }


def _checked(turn: str, number: int, longest: int) -> str:
    if len(turn) > longest:
        sentence = f"context.{number - 1}: a turn may have {longest:,} characters at most"
        raise UserError(sentence, "turn_long", limit=longest)
    try:
        return clean_turn(turn, f"turn {number} of the context")
    except ValueError as error:
        raise UserError(f"{error}; give what is said, e.g. {EXAMPLE}") from error
