"""Translations over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field

from paddle_dialog.data.records import Record
from paddle_dialog.serving.endpoint import NOT_BLANK, Count, Endpoint, Job, NoResult, RequestModel, Text
from paddle_dialog.tasks.translation.prediction import TranslationPredictor

EXAMPLE = "学而时习之，不亦说乎？"
ALL_BANNED = "every translation that was found has a word that this server does not write; change the text"


class TranslationRequest(RequestModel):
    """A text to translate."""

    source: Text = Field(
        min_length=1, description="One sentence or more.", examples=[EXAMPLE], json_schema_extra=NOT_BLANK
    )
    n_best: Count = Field(1, ge=1, description="How many translations, best first.")
    attention: bool = Field(False, description="Also tell where the model looked, for the best translation.")


class TranslationCandidate(BaseModel):
    """One translation."""

    text: str
    score: float = Field(description="Log-probability per token, the ends of sentences included.")


class TranslationAttention(BaseModel):
    """Where the model looked."""

    source: list[str]
    target: list[str]
    weights: list[list[float]] = Field(description="For each target token, over the source tokens.")


class TranslationAnswer(BaseModel):
    """Translations."""

    source: str
    predictions: list[TranslationCandidate]
    unsure: Literal["modern", "repeats"] | None = Field(
        None, description="Why it is not to be trusted; absent where nothing says so."
    )
    attention: TranslationAttention | None = Field(None, description="Only where it was asked for.")


class TranslationItem(NamedTuple):
    """A checked request."""

    source: str
    attention: bool


class TranslationEndpoint(Endpoint[TranslationRequest]):
    """Translates a text, sentence by sentence."""

    task = "translation"
    path = "/v1/translation"
    summary = "A translation"
    page = Path(__file__).parent / "page"
    request_model, answer_model = TranslationRequest, TranslationAnswer
    predictor: TranslationPredictor

    def details(self) -> Record:
        data = self.predictor.config.data
        self.predictor.predict([EXAMPLE[: data.max_length]])
        return {"longest_sentence": data.max_length, "tokens": data.tokens, "reverse": data.reverse}

    def prepare(self, request: TranslationRequest) -> Job:
        self.predictor.sentences(request.source)
        rows = max(self.predictor.config.decoding.beam_size, request.n_best)
        item = TranslationItem(request.source, request.attention)
        return Job(item, request.n_best, cost=2 * len(request.source) * rows)

    def answer(self, items: Sequence[TranslationItem], settings: int) -> list[Record | NoResult]:
        found = self.predictor.predict([item.source for item in items], settings)
        answers: list[Record | NoResult] = []
        for item, candidates in zip(items, found, strict=True):
            kept = self.without_banned(candidates)
            if not kept:
                answers.append(NoResult(ALL_BANNED, "banned_written"))
                continue
            record = self.predictor.record(item.source, kept)
            if item.attention:
                source, target, weights = self.predictor.text_attention(item.source, kept[0])
                record["attention"] = {
                    "source": source,
                    "target": target,
                    "weights": weights.round(4).tolist(),
                }
            answers.append(record)
        return answers
