"""Translations over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from paddle_dialog.data.files import Record
from paddle_dialog.serving.endpoint import (
    NOT_BLANK,
    Attention,
    Candidate,
    Count,
    Endpoint,
    Job,
    NoResult,
    RequestModel,
    Text,
)
from paddle_dialog.tasks.translation.prediction import TranslationPrediction, TranslationPredictor

EXAMPLE = "学而时习之，不亦说乎？"


class TranslationRequest(RequestModel):
    """A text to translate."""

    source: Text = Field(
        min_length=1, description="One sentence or more.", examples=[EXAMPLE], json_schema_extra=NOT_BLANK
    )
    n_best: Count = Field(1, ge=1, description="How many translations, best first.")
    attention: bool = Field(False, description="Also tell where the model looked, for the best translation.")


class TranslationAnswer(BaseModel):
    """Translations."""

    source: str
    predictions: list[Candidate]
    unsure: Literal["modern", "repeats"] | None = Field(
        None, description="Why it is not to be trusted; absent where nothing says so."
    )
    attention: Attention | None = Field(None, description="Only where it was asked for.")


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
        return Job((request.source, request.attention), request.n_best, cost=2 * len(request.source) * rows)

    def answer(self, items: Sequence[tuple[str, bool]], settings: int) -> list[Record | NoResult]:
        found = self.predictor.predict([source for source, _ in items], settings)
        return [self._record(*item, candidates) for item, candidates in zip(items, found, strict=True)]

    def _record(
        self, text: str, attention: bool, candidates: Sequence[TranslationPrediction]
    ) -> Record | NoResult:
        kept = self.without_banned(candidates)
        if not kept:
            return self.all_banned("translation that was found", "change the text")
        record = self.predictor.record(text, kept)
        if attention:
            source, target, weights = self.predictor.text_attention(text, kept[0])
            record["attention"] = {"source": source, "target": target, "weights": weights.round(4).tolist()}
        return record
