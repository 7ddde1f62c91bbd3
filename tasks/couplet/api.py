"""One line of a couplet for the other over HTTP."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from paddle_dialog.config.explain import help_of
from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from paddle_dialog.serving.endpoint import Count, Endpoint, Job, NoResult, OptionalText, RequestModel
from paddle_dialog.tasks.couplet.config import RulesConfig
from paddle_dialog.tasks.couplet.direction import TO_FIRST, TO_SECOND, Direction, knows_marks
from paddle_dialog.tasks.couplet.form import Form
from paddle_dialog.tasks.couplet.prediction import CoupletPredictor, GivenLine
from paddle_dialog.tasks.couplet.rules import Rules
from paddle_dialog.tasks.couplet.search import DIVERSE_BEAM
from paddle_dialog.text.characters import HANZI, is_punctuation
from paddle_dialog.text.tones import Tone, tones

EXAMPLE = "晚风摇树树还挺"
_LINE: dict[str, Any] = {"pattern": HANZI, "minLength": 1}  # the model checks it, with a plainer message
ToneName = Literal["ping", "ze", "unknown", "punctuation"]
_TONE_NAMES: dict[frozenset[Tone], ToneName] = {
    frozenset({Tone.LEVEL}): "ping",
    frozenset({Tone.OBLIQUE}): "ze",
}
ALL_BANNED = "every {} that was found has a word that this server does not write; change the {}"
ONE_LINE = "give exactly one of first (a 上联 to answer with 下联) and second (a 下联 to answer with 上联)"


def _rule(name: str, ge: float | None = None, le: float | None = None) -> Any:
    return Field(None, description=help_of(RulesConfig, name), ge=ge, le=le)


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


class CoupletCandidate(BaseModel):
    """One answer."""

    text: str
    score: float = Field(description="Log-probability per character, the end included.")
    form: Form
    relaxed: list[str] | None = Field(None, description="Rules it could not be held to; absent if none.")
    known: KnownCouplet | None = Field(
        None, description="Absent where the model has no index of its corpus, or none for this length."
    )


class KnownCouplet(BaseModel):
    """The couplet of the training corpus nearest to an answer."""

    first: str
    second: str
    distance: int = Field(
        description="Characters in which the written line differs; 0 if it stands there whole."
    )


class CoupletTones(BaseModel):
    """The tone of each character; `unknown` where it can be both or no reading is known."""

    first: list[ToneName] | list[list[ToneName]] = Field(
        description="Of a given 上联, or of each prediction."
    )
    second: list[list[ToneName]] | list[ToneName] = Field(
        description="Of each prediction, or of a given 下联."
    )


class CoupletAnswer(BaseModel):
    """Answers with their form."""

    first: str | None = Field(None, description="The 上联 as it was sent; absent if a 下联 was.")
    second: str | None = Field(None, description="The 下联 as it was sent; absent if a 上联 was.")
    line: str = Field(description="The line as the model read it: blanks dropped, punctuation unified.")
    predictions: list[CoupletCandidate]
    tones: CoupletTones


class CoupletItem(NamedTuple):
    """A checked request: the line as it was sent, and as the model reads it."""

    text: str
    given: GivenLine


class CoupletSettings(NamedTuple):
    """What the requests of one batch share."""

    n_best: int
    rules: RulesConfig
    direction: Direction


class CoupletEndpoint(Endpoint[CoupletRequest]):
    """Answers one line with the other under the rules of form, with the characters that the user has locked."""

    task = "couplet"
    path = "/v1/couplet"
    summary = "下联 to a 上联, or 上联 to a 下联"
    page = Path(__file__).parent / "page"
    request_model, answer_model = CoupletRequest, CoupletAnswer
    predictor: CoupletPredictor

    def details(self) -> Record:
        """See `Endpoint`."""
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
        """See `Endpoint`."""
        given = [text for text in (request.first, request.second) if text is not None]
        if len(given) != 1:
            raise UserError(ONE_LINE)
        direction = TO_SECOND if request.second is None else TO_FIRST
        line = self.predictor.check(given[0], request.lock, direction)
        changes = {} if request.rules is None else request.rules.model_dump(exclude_none=True)
        rules = dataclasses.replace(self.predictor.config.rules, **changes)
        rows = self._decoding.beam_size + (max(DIVERSE_BEAM, 2 * request.n_best) if request.n_best > 1 else 0)
        settings = CoupletSettings(request.n_best, rules, direction)
        return Job(CoupletItem(given[0], line), settings, cost=rows * len(given[0]))

    def answer(self, items: Sequence[CoupletItem], settings: CoupletSettings) -> list[Record | NoResult]:
        """See `Endpoint`."""
        found = self.predictor.answer(
            [item.given for item in items],
            settings.n_best,
            Rules.of(settings.rules),
            self._decoding,
            settings.direction,
            known=self.predictor.couplet_index is not None,
            refused=self.words.finds if self.words.words else None,
        )
        direction, answers = settings.direction, list[Record | NoResult]()
        for item, candidates in zip(items, found, strict=True):
            written = [self._without_banned(candidate.as_dict()) for candidate in candidates]
            none_left = NoResult(ALL_BANNED.format(direction.written, direction.given), "banned_written")
            answers.append(_record(item, direction, written) if written else none_left)
        return answers

    def _without_banned(self, record: Record) -> Record:
        """Leave out a couplet of the corpus that has a banned word."""
        known = record.get("known")
        if known is None or not self.words.finds(known["first"] + known["second"]):
            return record
        return {key: value for key, value in record.items() if key != "known"}


def tone_names(line: str) -> list[ToneName]:
    """Return what the page draws beside each character of a line."""
    return ["punctuation" if is_punctuation(c) else _TONE_NAMES.get(tones(c), "unknown") for c in line]


def _record(item: CoupletItem, direction: Direction, predictions: list[Record]) -> Record:
    given, written = direction.pair("first", "second")
    tones = {given: tone_names(item.given.text), written: [tone_names(p["text"]) for p in predictions]}
    return {given: item.text, "line": item.given.text, "predictions": predictions, "tones": tones}
