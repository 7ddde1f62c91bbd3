"""Poems over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from paddle_dialog.data.files import Record
from paddle_dialog.errors import UserError
from paddle_dialog.serving.endpoint import (
    Candidate,
    Count,
    Endpoint,
    Job,
    NoResult,
    OptionalText,
    RequestModel,
    Text,
)
from paddle_dialog.tasks.poem.data import InputKind, VerseConfig
from paddle_dialog.tasks.poem.forms import FormChoice, FormReport
from paddle_dialog.tasks.poem.prediction import PoemPredictor, Prompt
from paddle_dialog.text.characters import HANZI

STEPS = 1500  # 24 draws of some sixty characters
_BEGUN: list[Any] = [  # an acrostic has characters
    {"properties": {"texts_are": {"enum": ["begin", "title", None]}}},
    {"required": ["text"], "properties": {"text": {"pattern": HANZI}}},
]


class PoemRequest(RequestModel):
    """What a poem is written from."""

    model_config = ConfigDict(json_schema_extra={"anyOf": _BEGUN})

    text: Text = Field("", description="A beginning, the lines' first characters, or a title; may be empty.")
    texts_are: InputKind | None = Field(None, description="What `text` is; a title where the recipe says so.")
    form: FormChoice | None = Field(None, description="The form; that of the recipe where it is left out.")
    title: OptionalText = Field(None, description="A title, where `text` is something else.")
    n_best: Count = Field(1, ge=1, description="How many poems, the likeliest first.")
    seed: int | None = Field(None, ge=0, lt=2**32, description="Of the draws; another one gives other poems.")


class Poem(Candidate):
    """One poem."""

    form: FormReport | None = Field(description="Null where it has no form.")
    relaxed: list[str] | None = Field(None, description="Rules it could not be held to; absent if none.")


class PoemAnswer(BaseModel):
    """Poems."""

    begin: str = Field(description="The text as it was sent.")
    written_to: str | None = Field(
        None,
        description="Of a title of today: the title it was read as; null if the model knows no verse of it.",
    )
    predictions: list[Poem]


class PoemEndpoint(Endpoint[PoemRequest]):
    """Continues a beginning, or writes a poem of a form to a title or with given first characters."""

    task = "poem"
    path = "/v1/poem"
    summary = "A poem from a beginning, a title, or the first characters of its lines"
    page = Path(__file__).parent / "page"
    request_model, answer_model = PoemRequest, PoemAnswer
    predictor: PoemPredictor

    def details(self) -> Record:
        decoding = self.predictor.config.decoding
        if decoding.strategy == "greedy":
            raise UserError(
                "decoding.strategy: greedy search writes one poem only; serve the task with sample"
            )
        self.predictor.predict([""], 1, form="any", texts_are="begin")
        return {"knows_forms": self.predictor.knows_forms, "longest": decoding.max_length}

    def prepare(self, request: PoemRequest) -> Job:
        verse = self.predictor.verse(request.form, request.texts_are, request.title)
        item = request.text, self.predictor.check(request.text, verse)
        return Job(item, (request.n_best, verse, request.seed), cost=STEPS)

    def answer(
        self, items: Sequence[tuple[str, Prompt]], settings: tuple[int, VerseConfig, int | None]
    ) -> list[Record | NoResult]:
        n_best, verse, seed = settings
        found = self.predictor.written([prompt for _, prompt in items], n_best, verse, seed)
        answers: list[Record | NoResult] = []
        for (text, _), (poems, gain) in zip(items, found, strict=True):
            kept = [poem.as_dict() for poem in self.without_banned(poems)]
            record = {"begin": text, **self.predictor.written_to(text, verse, gain), "predictions": kept}
            answers.append(record if kept else self.all_banned("poem that was written", "ask for another"))
        return answers
