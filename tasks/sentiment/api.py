"""Judgements of reviews over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from paddle_dialog.data.files import Record
from paddle_dialog.serving.endpoint import (
    ANSWERED,
    LANGUAGE,
    NOT_BLANK,
    Endpoint,
    Job,
    NoResult,
    RequestModel,
    Text,
)
from paddle_dialog.tasks.sentiment.prediction import EXAMPLES, SentimentPredictor
from paddle_dialog.text.characters import LanguageName

EXAMPLE = "房间很干净，服务员也很热情，下次还会住这里。"


class SentimentRequest(RequestModel):
    """A review to judge."""

    text: Text = Field(min_length=1, description="A review.", examples=[EXAMPLE], json_schema_extra=NOT_BLANK)
    language: LanguageName | None = LANGUAGE


class Word(BaseModel):
    """A token of the review."""

    text: str
    weight: float = Field(description="What it adds to the log-odds of the review being good.")


class SentimentAnswer(BaseModel):
    """A judgement."""

    text: str
    label: int | None = Field(description="1 good, 0 bad, null where that is unclear.")
    probability: float = Field(description="Of the likelier label.")
    words: list[Word] = Field(description="The review's tokens and what each speaks for.")
    language: LanguageName | None = ANSWERED


class SentimentEndpoint(Endpoint[SentimentRequest]):
    """Tells whether a review is good or bad, and which of its words decided."""

    task = "sentiment"
    path = "/v1/sentiment"
    summary = "Good or bad?"
    page = Path(__file__).parent / "page"
    request_model, answer_model = SentimentRequest, SentimentAnswer
    predictor: SentimentPredictor

    def details(self) -> Record:
        self.predictor.predict([" ".join(EXAMPLES.values())])  # any model reads it
        return {"language": self.language, "tokens": self.predictor.config.data.tokens}

    def prepare(self, request: SentimentRequest) -> Job:
        self.predictor.check(request.text)
        return Job(request.text, None, cost=1 + len(request.text) // 10)

    def answer(self, items: Sequence[str], settings: None) -> list[Record | NoResult]:
        answers: list[Record | NoResult] = []
        for text, one in zip(items, self.predictor.predict(items), strict=True):
            words = [
                {"text": token, "weight": round(float(weight), 4)}
                for token, weight in zip(one.tokens, one.weights, strict=True)
            ]
            judged = {"label": one.shown, "probability": round(one.probability, 4), "words": words}
            answers.append({"text": text, **judged, "language": self.language})
        return answers
