"""Couplets over HTTP: one line for the other, whole couplets, 横批, and the form of a given pair."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

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
    R,
    RequestModel,
    Text,
    changed,
)
from paddle_dialog.tasks.couplet.candidates import DIVERSE_BEAM
from paddle_dialog.tasks.couplet.composing.composer import ComposingPredictor, NoneFound
from paddle_dialog.tasks.couplet.composing.drafts import broken_tones
from paddle_dialog.tasks.couplet.composing.proposals import Proposal
from paddle_dialog.tasks.couplet.composing.request import (
    MAX_LENGTH,
    MIN_LENGTH,
    PATTERN,
    Request,
    main_themes,
    read_request,
    usual_patterns,
)
from paddle_dialog.tasks.couplet.config import RulesConfig
from paddle_dialog.tasks.couplet.couplets import Known
from paddle_dialog.tasks.couplet.prediction import GivenLine
from paddle_dialog.tasks.couplet.prompts import TO_FIRST, TO_SECOND, Direction, knows_marks
from paddle_dialog.tasks.couplet.rules import Form, Rules, broken_rules, form_report, rhythm_opposed
from paddle_dialog.text.characters import HANZI, Tone, is_punctuation, normalise_line, simplified, tones

EXAMPLE = "晚风摇树树还挺"
_LINE: dict[str, Any] = {"pattern": HANZI, "minLength": 1}  # the model checks it, with a plainer message
_PLACED: list[Any] = [  # a place other than the first is that of a name
    {"properties": {"place": {"const": 1}}},
    {"required": ["name"], "properties": {"name": {"minLength": 1}}},
]
ToneName = Literal["ping", "ze", "unknown", "punctuation"]
_TONE_NAMES: dict[frozenset[Tone], ToneName] = {
    frozenset({Tone.LEVEL}): "ping",
    frozenset({Tone.OBLIQUE}): "ze",
}
ONE_LINE = "give exactly one of first (a 上联 to answer with 下联) and second (a 下联 to answer with 上联)"
OPPOSED = "opposed_tones"  # a rule for a human's pair; the search only prefers it

_RELAXED: Any = Field(None, description="Rules it could not be held to; absent if none.")
_KNOWN: Any = Field(
    None,
    description="The couplet of the training corpus with the nearest line; absent without an index of it.",
)
STEPS = 8000  # of one request, about two seconds
_MANY_SCROLLS = 50  # chosen where some may have a banned word


_rule = partial(changed, RulesConfig)


def _only(given: str, other: str) -> dict[str, Any]:
    return {"required": [given], "properties": {given: {"type": "string"}, other: {"type": "null"}}}


class CoupletRules(RequestModel):
    """The rules of form, where they are to differ from the server's."""

    enabled: bool | None = _rule("enabled")
    same_length: bool | None = _rule("same_length")
    copy_punctuation: bool | None = _rule("copy_punctuation")
    mirror_repeats: bool | None = _rule("mirror_repeats")
    no_shared_character: bool | None = _rule("no_shared_character")
    final_tone: bool | None = _rule("final_tone")
    tone_weight: float | None = _rule("tone_weight", ge=0, le=100)


class CoupletRequest(RequestModel):
    """A line to answer: exactly one of `first` and `second`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [_only("first", "second"), _only("second", "first")]}
    )

    first: OptionalText = Field(
        None,
        min_length=1,
        description="A 上联 that wants a 下联, with one Chinese character at least.",
        examples=[EXAMPLE],
        json_schema_extra=_LINE,
    )
    second: OptionalText = Field(
        None, min_length=1, description="Instead, a 下联 that wants a 上联.", json_schema_extra=_LINE
    )
    n_best: Count = Field(5, ge=1, description="How many answers, best first; they differ from each other.")
    lock: OptionalText = Field(
        None,
        min_length=1,
        description="One character for each of the line, ？ where any may stand.",
        examples=["？？？？花更红"],
    )
    rules: CoupletRules | None = None


class CoupletCandidate(Candidate):
    """One answer."""

    form: Form
    relaxed: list[str] | None = _RELAXED
    known: Known | None = _KNOWN


class Tones(BaseModel):
    """The tone of each character; `unknown` where it can be both or no reading is known."""

    first: list[ToneName] | list[list[ToneName]] = Field(description="Of one 上联, or of each of several.")
    second: list[ToneName] | list[list[ToneName]] = Field(description="Of one 下联, or of each of several.")


class CoupletAnswer(BaseModel):
    """Answers with their form."""

    first: str | None = Field(None, description="The 上联 as it was sent; absent if a 下联 was.")
    second: str | None = Field(None, description="The 下联 as it was sent; absent if a 上联 was.")
    line: str = Field(description="The line as the model read it: blanks dropped, punctuation unified.")
    predictions: list[CoupletCandidate]
    tones: Tones


class _OfCouplets(Endpoint[R]):
    task = "couplet"
    predictor: ComposingPredictor

    def known(self, first: str, second: str) -> Record:
        """Return `known` where the corpus has a couplet with a shared character and no banned word."""
        if self.predictor.couplet_index is None:
            return {}
        found = self.predictor.nearest_known(simplified(first), simplified(second))
        if found is None or found.distance == len(found.first):
            return {}
        return {} if self.words.finds(found.first + found.second) else {"known": found.as_dict()}


class CoupletEndpoint(_OfCouplets[CoupletRequest]):
    """Answers one line with the other under the rules of form, with the characters that the user has locked."""

    path, summary = "/v1/couplet", "下联 to a 上联, or 上联 to a 下联"
    page = Path(__file__).parent / "page"
    request_model, answer_model = CoupletRequest, CoupletAnswer

    def details(self) -> Record:
        predictor, decoding = self.predictor, self.predictor.config.decoding
        if decoding.strategy == "greedy":  # which gives only one candidate
            decoding = dataclasses.replace(decoding, strategy="beam", beam_size=1)
        self._decoding = decoding
        predictor.predict([EXAMPLE])
        if predictor.couplet_index is not None:
            predictor.couplet_index.unpack()
        shown = dataclasses.asdict(predictor.config.rules)
        can_reverse = knows_marks(predictor.vocabulary)
        return {"longest_line": predictor.longest_line, "reverse": can_reverse, "rules": shown}

    def prepare(self, request: CoupletRequest) -> Job:
        given = [text for text in (request.first, request.second) if text is not None]
        if len(given) != 1:
            raise UserError(ONE_LINE)
        direction = TO_SECOND if request.second is None else TO_FIRST
        line = self.predictor.check(given[0], request.lock, direction)
        changes = {} if request.rules is None else request.rules.model_dump(exclude_none=True)
        rules = dataclasses.replace(self.predictor.config.rules, **changes)
        rows = self._decoding.beam_size + (max(DIVERSE_BEAM, 2 * request.n_best) if request.n_best > 1 else 0)
        settings = (request.n_best, rules, direction)
        return Job((given[0], line), settings, cost=rows * len(given[0]))

    def answer(
        self, items: Sequence[tuple[str, GivenLine]], settings: tuple[int, RulesConfig, Direction]
    ) -> list[Record | NoResult]:
        n_best, rules, direction = settings
        found = self.predictor.answer(
            [line for _, line in items],
            n_best,
            Rules.of(rules),
            self._decoding,
            direction,
            known=self.predictor.couplet_index is not None,
            refused=self.words.finds if self.words.words else None,
        )
        return [
            self._record(text, line.text, direction, [candidate.as_dict() for candidate in candidates])
            for (text, line), candidates in zip(items, found, strict=True)
        ]

    def _record(self, text: str, line: str, direction: Direction, written: list[Record]) -> Record | NoResult:
        if not written:
            return self.all_banned(f"{direction.written} that was found", f"change the {direction.given}")
        for record in written:  # without a couplet of the corpus that has a banned word
            known = record.get("known")
            if known is not None and self.words.finds(known["first"] + known["second"]):
                del record["known"]
        given, other = direction.pair("first", "second")
        tones = {given: tone_names(line), other: [tone_names(record["text"]) for record in written]}
        return {given: text, "line": line, "predictions": written, "tones": tones}


class ComposeRequest(RequestModel):
    """What couplets are to be; nothing at all is allowed too."""

    model_config = ConfigDict(json_schema_extra={"anyOf": _PLACED})

    theme: Text = Field("", description="Words with blanks between them: a usual theme or one's own.")
    name: Text = Field(
        "",
        description="Its characters stand in 上联 and 下联 by turns; two fill a couplet.",
        json_schema_extra={"pattern": f"^$|{HANZI}"},
    )
    place: int = Field(
        1, ge=1, le=MAX_LENGTH, description="Where they stand, 1 first; punctuation not counted."
    )
    length: int | None = Field(
        None, ge=MIN_LENGTH, le=MAX_LENGTH, description="Characters of a line, punctuation not counted."
    )
    pattern: str | None = Field(
        None,
        description=f"Characters of the clauses, e.g. 4+7; {MIN_LENGTH} to {MAX_LENGTH} together.",
        json_schema_extra={"pattern": PATTERN},
    )
    count: Count = Field(5, ge=1, description="How many proposals.")
    scroll: OptionalText = Field(None, description="A 横批 of one's own.", json_schema_extra=_LINE)
    seed: int | None = Field(None, ge=0, le=2**32 - 1, description="Another one gives other proposals.")


class ComposedCouplet(BaseModel):
    """One couplet."""

    first: str
    second: str
    scroll: str = Field(description="The 横批.")
    scrolls: list[str] = Field(description="Five that go with it, best first.")
    score: float = Field(description="Mean log-probability per character, the ends included.")
    form: Form
    relaxed: list[str] | None = _RELAXED
    set: int | None = Field(None, description="Number of the proposal, where one has several couplets.")
    part: int | None = Field(None, description="Number of the couplet in it.")
    known: Known | None = _KNOWN


class ComposeAnswer(BaseModel):
    """Couplets that differ, best first."""

    couplets: list[ComposedCouplet]
    tones: Tones


class ComposeEndpoint(_OfCouplets[ComposeRequest]):
    """Writes whole couplets from a theme, from a name or from nothing, each with its 横批."""

    path, summary = "/v1/compose", "Whole couplets"
    request_model, answer_model = ComposeRequest, ComposeAnswer

    def details(self) -> Record:
        if self.predictor.composes:
            self.predictor.compose(count=1)
        patterns = [str(pattern) for pattern in usual_patterns()]
        return {"composes": self.predictor.composes, "themes": main_themes(), "patterns": patterns}

    def prepare(self, request: ComposeRequest) -> Job:
        asked = read_request(**request.model_dump(exclude={"seed"}))
        self.predictor.check_composes(asked)
        return Job(asked, request.seed, cost=STEPS)

    def answer(self, items: Sequence[Request], settings: int | None) -> list[Record | NoResult]:
        return [[*self.answer_in_parts(asked, settings)][-1] for asked in items]

    def answer_in_parts(self, item: Request, settings: int | None) -> Iterator[Record | NoResult]:
        try:
            for found in self.predictor.compose_in_parts(item, settings, self.words.finds):
                yield self._record(found)
        except NoneFound as error:
            yield NoResult(str(error), error.code)

    def _record(self, found: Sequence[Proposal]) -> Record:
        fit = [[scroll for scroll in one.scrolls if not self.words.finds(scroll)] for one in found]
        couplets = [
            dataclasses.replace(one, scrolls=tuple(scrolls)).as_dict()
            | {"scrolls": scrolls}
            | self.known(one.first, one.second)
            for one, scrolls in zip(found, fit, strict=True)
        ]
        tones = {side: [tone_names(getattr(one, side)) for one in found] for side in ("first", "second")}
        return {"couplets": couplets, "tones": tones}


class ScrollRequest(RequestModel):
    """A couplet that wants a 横批."""

    first: Text = Field(min_length=1, description="上联.", json_schema_extra={"pattern": HANZI})
    second: Text = Field(min_length=1, description="下联.", json_schema_extra={"pattern": HANZI})
    n_best: Count = Field(5, ge=1, description="How many, best first.")


class ScrollText(Candidate):
    """A 横批."""

    score: float = Field(description="How well it goes with the couplet; only the order means something.")


class ScrollAnswer(BaseModel):
    """横批, best first."""

    scrolls: list[ScrollText]


class ScrollEndpoint(_OfCouplets[ScrollRequest]):
    """Chooses 横批 for a couplet from a list of traditional ones."""

    path, summary = "/v1/scroll", "横批 to a couplet"
    request_model, answer_model = ScrollRequest, ScrollAnswer

    def prepare(self, request: ScrollRequest) -> Job:
        self.predictor.scrolls(request.first, request.second, 1)
        return Job((request.first, request.second), request.n_best)

    def answer(self, items: Sequence[tuple[str, str]], settings: int) -> list[Record | NoResult]:
        asked = settings if not self.words.words else _MANY_SCROLLS
        fit = [self.without_banned(self.predictor.scrolls(*lines, asked)) for lines in items]
        return [{"scrolls": [scroll.as_dict() for scroll in scrolls[:settings]]} for scrolls in fit]


class FormRequest(RequestModel):
    """A couplet that somebody wrote; a line may still be empty."""

    first: Text = Field(description="上联.")
    second: Text = Field(description="下联.")


class FormAnswer(BaseModel):
    """What the rules say of it."""

    form: Form
    tones: Tones
    broken: list[str] = Field(
        description="Rules of the couplet that it does not keep; of lines that are there."
    )
    known: Known | None = _KNOWN


class FormEndpoint(_OfCouplets[FormRequest]):
    """Reports which rules of form a couplet keeps."""

    path, summary = "/v1/form", "The form of a couplet"
    request_model, answer_model = FormRequest, FormAnswer

    def prepare(self, request: FormRequest) -> Job:
        return Job((normalise_line(request.first), normalise_line(request.second)), None)

    def answer(self, items: Sequence[tuple[str, str]], settings: None) -> list[Record | NoResult]:
        return [self._record(*lines) for lines in items]

    def _record(self, first: str, second: str) -> Record:
        form, broken = form_report(first, second), []
        if first:
            broken += broken_tones(first)
        if first and second:
            broken += [] if rhythm_opposed(first, second) else [OPPOSED]
            broken += broken_rules(first, second, form, self.predictor.rules)
        tones = {"first": tone_names(first), "second": tone_names(second)}
        known = self.known(first, second)
        return {"form": form.as_dict(), "tones": tones, "broken": broken, **known}


def tone_names(line: str) -> list[ToneName]:
    """Return what the page draws next to each character of a line."""
    return ["punctuation" if is_punctuation(c) else _TONE_NAMES.get(tones(c), "unknown") for c in line]


ENDPOINTS = (CoupletEndpoint, ComposeEndpoint, ScrollEndpoint, FormEndpoint)
