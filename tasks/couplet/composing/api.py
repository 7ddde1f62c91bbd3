"""Whole couplets, 横批, and the form of a human's pair over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from paddle_dialog.data.records import Record
from paddle_dialog.serving.endpoint import Count, Endpoint, Job, NoResult, OptionalText, RequestModel, Text
from paddle_dialog.serving.word_filter import WordFilter
from paddle_dialog.tasks.couplet.api import KnownCouplet, ToneName, tone_names
from paddle_dialog.tasks.couplet.composing.composer import NoneFound
from paddle_dialog.tasks.couplet.composing.drafts import broken_tones
from paddle_dialog.tasks.couplet.composing.prediction import ComposingPredictor
from paddle_dialog.tasks.couplet.composing.proposals import Proposal
from paddle_dialog.tasks.couplet.composing.request import Request, main_themes, read_request, usual_patterns
from paddle_dialog.tasks.couplet.form import Form, form_report, rhythm_opposed
from paddle_dialog.tasks.couplet.rules import Rules, broken_rules
from paddle_dialog.text.characters import HANZI, normalise_line
from paddle_dialog.text.simplified import simplified

OPPOSED = "opposed_tones"  # a rule for a human's pair; the search only prefers it

_KNOWN = (
    "The couplet of the training corpus with the line nearest to one of these; absent without an index of it."
)
STEPS = 8000  # of one request, about two seconds
_MANY_SCROLLS = 50  # chosen where some may have a banned word


class ComposeRequest(RequestModel):
    """What couplets are to be; nothing at all is allowed too."""

    theme: Text = Field("", description="Words with blanks between them: a usual theme or one's own.")
    name: Text = Field("", description="Its characters stand in 上联 and 下联 by turns; two fill a couplet.")
    place: int = Field(1, ge=1, description="Where they stand; 1 is first, punctuation is not counted.")
    length: int | None = Field(None, description="Characters of a line, 4 to 15, punctuation not counted.")
    pattern: str | None = Field(None, description="Characters of the clauses, e.g. 4+7.")
    count: Count = Field(5, ge=1, description="How many proposals.")
    scroll: OptionalText = Field(None, description="A 横批 of one's own.")
    seed: int | None = Field(None, ge=0, le=2**32 - 1, description="Another one gives other proposals.")


class ComposedCouplet(BaseModel):
    """One couplet."""

    first: str
    second: str
    scroll: str = Field(description="The 横批.")
    scrolls: list[str] = Field(description="Five that go with it, best first.")
    score: float = Field(description="Mean log-probability per character, the ends included.")
    form: Form
    relaxed: list[str] | None = Field(None, description="Rules it could not be held to; absent if none.")
    set: int | None = Field(None, description="Number of the proposal, where one has several couplets.")
    part: int | None = Field(None, description="Number of the couplet in it.")
    known: KnownCouplet | None = Field(None, description=_KNOWN)


class PairTones(BaseModel):
    """The tones of each couplet's lines."""

    first: list[list[ToneName]]
    second: list[list[ToneName]]


class ComposeAnswer(BaseModel):
    """Couplets that differ, best first."""

    couplets: list[ComposedCouplet]
    tones: PairTones


class ComposeEndpoint(Endpoint[ComposeRequest]):
    """Writes whole couplets from a theme, from a name or from nothing, each with its 横批."""

    task, path = "couplet", "/v1/compose"
    summary = "Whole couplets"
    request_model, answer_model = ComposeRequest, ComposeAnswer
    predictor: ComposingPredictor

    def details(self) -> Record:
        """See `Endpoint`."""
        if self.predictor.composes:
            self.predictor.compose(count=1)
        patterns = [str(pattern) for pattern in usual_patterns()]
        return {"composes": self.predictor.composes, "themes": main_themes(), "patterns": patterns}

    def prepare(self, request: ComposeRequest) -> Job:
        """See `Endpoint`."""
        asked = read_request(**request.model_dump(exclude={"seed"}))
        self.predictor.check_composes(asked)
        return Job(asked, request.seed, cost=STEPS)

    def answer(self, items: Sequence[Request], settings: Any) -> list[Record | NoResult]:
        """See `Endpoint`."""
        return [self._composed(asked, settings) for asked in items]

    def _composed(self, asked: Request, seed: int | None) -> Record | NoResult:
        try:
            found = self.predictor.compose_checked(asked, seed, self.words.finds)
        except NoneFound as error:
            return NoResult(str(error), error.code)
        kept = [self._with_fit_scrolls(one) for one in found]
        return _record(self.predictor, kept, self.words)

    def _with_fit_scrolls(self, proposal: Proposal) -> Proposal:
        """Drop the 横批 that have a banned word."""
        return replace(proposal, scrolls=tuple(s for s in proposal.scrolls if not self.words.finds(s)))


class ScrollRequest(RequestModel):
    """A couplet that wants a 横批."""

    first: Text = Field(min_length=1, description="上联.", json_schema_extra={"pattern": HANZI})
    second: Text = Field(min_length=1, description="下联.", json_schema_extra={"pattern": HANZI})
    n_best: Count = Field(5, ge=1, description="How many, best first.")


class ScrollText(BaseModel):
    """A 横批."""

    text: str
    score: float = Field(description="How well it goes with the couplet; only the order means something.")


class ScrollAnswer(BaseModel):
    """横批, best first."""

    scrolls: list[ScrollText]


class ScrollEndpoint(Endpoint[ScrollRequest]):
    """Chooses 横批 for a couplet from a list of traditional ones."""

    task, path = "couplet", "/v1/scroll"
    summary = "横批 to a couplet"
    request_model, answer_model = ScrollRequest, ScrollAnswer
    predictor: ComposingPredictor

    def prepare(self, request: ScrollRequest) -> Job:
        """See `Endpoint`."""
        self.predictor.scrolls(request.first, request.second, 1)
        return Job((request.first, request.second), request.n_best)

    def answer(self, items: Sequence[tuple[str, str]], settings: int) -> list[Record | NoResult]:
        """See `Endpoint`."""
        asked = settings if not self.words.words else _MANY_SCROLLS
        found = [self.predictor.scrolls(first, second, asked) for first, second in items]
        fit = [[scroll for scroll in scrolls if not self.words.finds(scroll.text)] for scrolls in found]
        return [{"scrolls": [scroll.as_dict() for scroll in scrolls[:settings]]} for scrolls in fit]


class FormRequest(RequestModel):
    """A couplet that somebody wrote; a line may still be empty."""

    first: Text = Field(description="上联.")
    second: Text = Field(description="下联.")


class LineTones(BaseModel):
    """The tones of two lines, in the written form of the model."""

    first: list[ToneName]
    second: list[ToneName]


class FormAnswer(BaseModel):
    """What the rules say of it."""

    form: Form
    tones: LineTones
    broken: list[str] = Field(
        description="Rules of the couplet that it does not keep; of lines that are there."
    )
    known: KnownCouplet | None = Field(None, description=_KNOWN)


class FormItem(NamedTuple):
    """Two lines, normalised."""

    first: str
    second: str


class FormEndpoint(Endpoint[FormRequest]):
    """Says which rules of form a couplet keeps, whoever wrote it."""

    task, path = "couplet", "/v1/form"
    summary = "The form of a couplet"
    request_model, answer_model = FormRequest, FormAnswer
    predictor: ComposingPredictor

    def prepare(self, request: FormRequest) -> Job:
        """See `Endpoint`."""
        return Job(FormItem(normalise_line(request.first), normalise_line(request.second)), None)

    def answer(self, items: Sequence[FormItem], settings: Any) -> list[Record | NoResult]:
        """See `Endpoint`."""
        return [
            _form(item, self.predictor.rules) | _known(self.predictor, *item, self.words) for item in items
        ]


def _form(item: FormItem, rules: Rules) -> Record:
    form, broken = form_report(*item), []
    if item.first:
        broken += broken_tones(item.first)
    if item.first and item.second:
        broken += [] if rhythm_opposed(*item) else [OPPOSED]
        broken += broken_rules(*item, form, rules)
    tones = {"first": tone_names(item.first), "second": tone_names(item.second)}
    return {"form": form.as_dict(), "tones": tones, "broken": broken}


def _known(predictor: ComposingPredictor, first: str, second: str, words: WordFilter) -> Record:
    """Return `known` where the index of the corpus has a couplet with a character in common, and no banned word."""
    if predictor.couplet_index is None:
        return {}
    found = predictor.nearest_known(simplified(first), simplified(second))
    if found is None or found.distance == len(found.first) or words.finds(found.first + found.second):
        return {}
    return {"known": found.as_dict()}


def _record(predictor: ComposingPredictor, proposals: Sequence[Proposal], words: WordFilter) -> Record:
    couplets = [
        proposal.as_dict()
        | {"scrolls": list(proposal.scrolls)}
        | _known(predictor, proposal.first, proposal.second, words)
        for proposal in proposals
    ]
    tones = {
        "first": [tone_names(proposal.first) for proposal in proposals],
        "second": [tone_names(proposal.second) for proposal in proposals],
    }
    return {"couplets": couplets, "tones": tones}
