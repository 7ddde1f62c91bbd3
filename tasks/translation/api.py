"""Translations over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field

from paddle_dialog.data.records import Record
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import Endpoint, Job, NoResult, RequestModel, bounded
from paddle_dialog.serving.word_filter import WordFilter
from paddle_dialog.tasks.translation.prediction import TranslationPredictor

EXAMPLE = "学而时习之，不亦说乎？"
ALL_BANNED = "every translation that was found has a word that this server does not write; change the text"


class TranslationRequest(RequestModel):
    """A text to translate."""

    source: str = Field(
        min_length=1,
        description="One sentence or more.",
        examples=[EXAMPLE],
        json_schema_extra={"pattern": r"\S"},  # the model checks it, with a plainer message
    )
    n_best: int = Field(1, ge=1, description="How many translations, best first.")
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
    answer_model = TranslationAnswer

    def __init__(self, limits: LimitsConfig) -> None:
        length, count = Field(max_length=limits.characters), Field(1, le=limits.n_best)
        self.request_model = bounded(TranslationRequest, source=length, n_best=count)

    def use(self, predictor: TranslationPredictor, words: WordFilter) -> Record:
        """See `Endpoint`."""
        self._predictor, self._words = predictor, words
        data = predictor.config.data
        predictor.predict([EXAMPLE[: data.max_length]])  # fills caches, so that the first request is quick
        return {"longest_sentence": data.max_length, "tokens": data.tokens, "reverse": data.reverse}

    def texts(self, request: TranslationRequest) -> Iterable[str]:
        """See `Endpoint`."""
        yield request.source

    def prepare(self, request: TranslationRequest) -> Job:
        """See `Endpoint`."""
        self._predictor.sentences(request.source)
        return Job(TranslationItem(request.source, request.attention), request.n_best)

    def answer(self, items: Sequence[TranslationItem], settings: int) -> list[Record | NoResult]:
        """See `Endpoint`; the settings are the number of candidates."""
        found = self._predictor.predict([item.source for item in items], settings)
        answers: list[Record | NoResult] = []
        for item, candidates in zip(items, found, strict=True):
            kept = [candidate for candidate in candidates if not self._words.finds(candidate.text)]
            if not kept:
                answers.append(NoResult(ALL_BANNED))
                continue
            record: Record = {"source": item.source, "predictions": [one.as_dict() for one in kept]}
            if item.attention:
                source, target, weights = self._predictor.text_attention(item.source, kept[0])
                record["attention"] = {
                    "source": source,
                    "target": target,
                    "weights": weights.round(4).tolist(),
                }
            answers.append(record)
        return answers
