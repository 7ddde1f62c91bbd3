"""A trained couplet model that answers one line of a couplet with the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.schema import MAX_ROWS
from paddle_dialog.data.files import Record
from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.processors import NO_SPECIAL_TOKENS, LogitsProcessor
from paddle_dialog.decoding.search import SearchOptions, decode, length_divisor, search_relaxed
from paddle_dialog.errors import UserError
from paddle_dialog.models.numpy_seq2seq import numpy_seq2seq
from paddle_dialog.predictor import GenerationPredictor, Prediction, check_request
from paddle_dialog.tasks.couplet.candidates import (
    DIVERSE_BEAM,
    BeamResult,
    Candidate,
    DiverseBeamPenalty,
    LineRequest,
    ReverseModel,
    choose,
)
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.tasks.couplet.couplets import BOTH, COUPLET_INDEX, CoupletIndex, Known, Line
from paddle_dialog.tasks.couplet.line_plan import CharacterTable, LinePlan, PlannedLines, Planner
from paddle_dialog.tasks.couplet.prompts import (
    ONE_WAY,
    TO_FIRST,
    TO_SECOND,
    Direction,
    encode_sources,
    knows_marks,
)
from paddle_dialog.tasks.couplet.rules import (
    Form,
    Rules,
    broken_rules,
    describe,
    form_report,
    read_locks,
)
from paddle_dialog.text.characters import is_hanzi, normalise_line, read_as_simplified

if TYPE_CHECKING:
    from paddle_dialog.config.schema import DecodingConfig


NO_INDEX = (
    "this bundle has no index of its training corpus; take the shipped pretrained/couplet, or make one by "
    "tools/export.py --data"
)


@dataclass(frozen=True)
class CoupletPrediction(Prediction):
    """A 下联, or a 上联 where that is asked for."""

    form: Form  # which rules of the couplet the pair keeps
    # The rules of the config that it could not be held to, see `paddle_dialog.tasks.couplet.rules`.
    relaxed: Sequence[str] = ()
    # The couplet of the training corpus nearest to it, where that was asked for and the index of the corpus has
    # lines of this length.
    known: Known | None = None

    def as_dict(self) -> Record:
        record = super().as_dict() | {"form": self.form.as_dict()}
        if self.relaxed:
            record["relaxed"] = list(self.relaxed)
        return record | ({"known": self.known.as_dict()} if self.known is not None else {})


def notes_of(prediction: Record) -> str:
    """Return the notes printed after a candidate."""
    notes = f"\trelaxed: {', '.join(prediction['relaxed'])}" if "relaxed" in prediction else ""
    if "known" not in prediction:
        return notes
    known = prediction["known"]
    away = f"differs in {known['distance']} from" if known["distance"] else "stands in"
    return f"{notes}\t{away} the corpus: {known['first']} / {known['second']}"


@dataclass(frozen=True)
class GivenLine:
    """A line to answer, checked."""

    text: str  # as the model reads it
    locks: Mapping[int, str]  # position → character that every answer has there


class CoupletPredictor(GenerationPredictor):
    """Answers 上联 with 下联, and 下联 with 上联 where the model was trained for both.

    Raises:
        UserError: `rerank.reverse` is not 0, and the model does not score a 上联.
    """

    def __init__(self, config: CoupletConfig, model: TrainedModel) -> None:
        self.config: CoupletConfig = config
        (self.vocabulary,) = model.vocabularies.values()
        self._trained = model
        make = partial(numpy_seq2seq, config.model, len(self.vocabulary))
        self.step_model: StepModel = model.fastest(make)
        self.table = CharacterTable(self.vocabulary)
        self.reverse = ReverseModel(self.step_model, self.vocabulary)
        if config.rerank.reverse and not knows_marks(self.vocabulary):
            raise UserError(
                "rerank.reverse: this bundle knows only 下联 for 上联; set it to 0, or take the shipped "
                "pretrained/couplet"
            )

    @cached_property
    def rules(self) -> Rules:
        """The rules of the config."""
        return Rules.of(self.config.rules)

    @cached_property
    def couplet_index(self) -> CoupletIndex | None:
        """The index of the training corpus; None where the bundle has none."""
        content = self._trained.files.get(COUPLET_INDEX)
        return None if content is None else CoupletIndex.from_bytes(content, COUPLET_INDEX)

    def nearest_known(self, first: str, second: str, compared: Sequence[Line] = BOTH) -> Known | None:
        """Return the couplet of the training corpus that is nearest to another, see `CoupletIndex.nearest`.

        Raises:
            UserError: the bundle has no index of the corpus.
        """
        if self.couplet_index is None:
            raise UserError(NO_INDEX)
        return self.couplet_index.nearest(first, second, compared)

    def predict(
        self,
        lines: Sequence[str],
        n_best: int | None = None,
        lock: Mapping[int, str] | None = None,
        template: str | None = None,
        rules: Rules | None = None,
        distance: float | None = None,
        known: bool = False,
        second: bool = False,
    ) -> list[list[CoupletPrediction]]:
        """Write 下联 under rules.

        Args:
            lines: 上联; blanks are dropped and punctuation is unified before the model sees them.
            n_best: candidates for each, best first; the config's number by default.
            lock: position (0 is the first) → character that every answer has there.
            template: the same as text, ？ for any character, e.g. ？？？？花更红.
            rules: of form; those of the config by default.
            distance: of several candidates, instead of the config's `choice.distance`.
            known: whether each candidate is to name the couplet of the training corpus nearest to it.
            second: whether the lines are 下联, and 上联 are wanted.

        Raises:
            UserError: a line is empty, has no hanzi, or is longer than the model allows, a locked character
                does not fit a line, the model was not trained for the direction, or it has no index of its corpus;
                or a number is out of its range.
        """
        check_request(lines, n_best)
        direction = TO_FIRST if second else TO_SECOND
        if distance is not None and not 0 <= distance <= 1:
            raise UserError(f"distance is {distance}; give a share from 0 to 1")
        given = [self.check(line, template, direction, lock) for line in lines]
        wanted = self.config.decoding.n_best if n_best is None else n_best
        return self.answer(given, wanted, rules, direction=direction, distance=distance, known=known)

    def check(
        self,
        line: str,
        template: str | None = None,
        direction: Direction = TO_SECOND,
        lock: Mapping[int, str] | None = None,
    ) -> GivenLine:
        """Return a line as `answer` takes it; the arguments, and the errors, are those of `predict`."""
        if direction.writes_first and not knows_marks(self.vocabulary):
            raise UserError(ONE_WAY)
        text, limit, name = read_as_simplified(normalise_line(line)), self.longest_line, direction.given
        if not text:
            raise UserError(f"the {name} is empty; give a line of Chinese characters, e.g. 晚风摇树树还挺")
        if not any(is_hanzi(character) for character in text):
            raise UserError(
                f"'{line[:40]}' has no Chinese character; give a {name} such as 晚风摇树树还挺",
                "line_not_chinese",
                text=line[:40],
            )
        if len(text) > limit:
            raise UserError(
                f"the {name} '{text[:20]}…' has {len(text)} characters, and this model reads up to {limit}; "
                "shorten it (data.max_length and decoding.max_length of the config set the limit)",
                "line_long",
                length=len(text),
                limit=limit,
            )
        locks = read_locks(text, lock or {}, template, name)
        if locks and self.config.decoding.engine == "reference":
            raise UserError("the reference engine cannot lock characters; take decoding.engine: fast")
        return GivenLine(text, locks)

    def answer(
        self,
        given: Sequence[GivenLine],
        wanted: int,
        rules: Rules | None = None,
        decoding: DecodingConfig | None = None,
        direction: Direction = TO_SECOND,
        distance: float | None = None,
        known: bool = False,
        refused: Callable[[str], bool] | None = None,
    ) -> list[list[CoupletPrediction]]:
        """Do what `predict` does for lines that are checked.

        Args:
            wanted: candidates for each.
            decoding: how to search; as the config says by default.
            refused: returns whether a text is not to be written; by default none is.
        """
        if known and self.couplet_index is None:
            raise UserError(NO_INDEX)
        decoding = self.config.decoding if decoding is None else decoding
        rules = self.rules if rules is None else rules
        apart = self.config.choice.distance if distance is None else distance
        request = LineRequest(rules, decoding, wanted, apart, direction, refused)
        answers: list[list[CoupletPrediction]] = []
        for start in range(0, len(given), decoding.batch_size):
            batch = given[start : start + decoding.batch_size]
            found = self._candidates(batch, request)
            for line, candidates in zip(batch, found, strict=True):
                answers.append([self._prediction(line.text, c, request, known) for c in candidates])
        return answers

    def _candidates(self, given: Sequence[GivenLine], request: LineRequest) -> list[list[Candidate]]:
        """Find at most `request.wanted` candidates for each line, best first; none where all are refused."""
        wanted, pool = request.wanted, self.config.rerank.candidates
        options, lines = self._options(request), [line.text for line in given]
        if request.decoding.engine == "reference":
            written = self._by_reference(lines, request, options)
            return [own[:wanted] for own in self._ordered(lines, written, request.direction)]
        found = self._by_rules(given, request, options)
        best = self._ordered(lines, [each.candidates[:pool] for each in found], request.direction)
        ordered = [[*own, *each.candidates[pool:]] for own, each in zip(best, found, strict=True)]
        if not request.differ:
            return [own[:wanted] for own in ordered]
        found = [replace(each, candidates=own) for each, own in zip(found, ordered, strict=True)]
        return [choose(each, wanted, request.distance) for each in found]

    def _options(self, request: LineRequest) -> SearchOptions:
        decoding, wanted, pool = request.decoding, request.wanted, self.config.rerank.candidates
        returned = wanted
        if request.differ or (request.refused is not None and decoding.strategy == "beam"):
            # How many are wanted must not change what is re-ranked; of those that are refused, others take the place.
            returned = decoding.beam_size if request.differ else max(wanted, decoding.beam_size)
        if self.config.rerank.reverse and decoding.strategy != "greedy":
            returned = max(returned, pool)
        return SearchOptions.of(decoding, returned, self.config.seed, [NO_SPECIAL_TOKENS])

    def _ordered(
        self, lines: Sequence[str], candidates: Sequence[list[Candidate]], direction: Direction
    ) -> list[list[Candidate]]:
        """Return the candidates of each line, best first; equal sums stay in the order of the search."""
        if not self.config.rerank.reverse:
            return list(candidates)
        scores = self.reverse.scores(lines, [[text for text, _ in own] for own in candidates], direction)
        ordered = []
        for own, back in zip(candidates, scores, strict=True):
            sums = np.array([h.score for _, h in own]) + self.config.rerank.reverse * back
            ordered.append([own[place] for place in np.argsort(-sums, kind="stable")])
        return ordered

    def _by_reference(
        self, lines: Sequence[str], request: LineRequest, options: SearchOptions
    ) -> list[list[Candidate]]:
        """Search with the reference engine, which knows no rules."""
        from paddle_dialog.decoding.reference import reference_beam_search  # imports Paddle

        encoded, longest = self._encode(lines, request.direction), self.config.decoding.max_length
        (beam,), n_best = options.beam_sizes(1), options.n_best
        found = reference_beam_search(self.network, *encoded, beam, n_best, longest)
        return [[("".join(self.vocabulary.decode(h.tokens)), h) for h in own] for own in found]

    def _by_rules(
        self, given: Sequence[GivenLine], request: LineRequest, options: SearchOptions
    ) -> list[BeamResult]:
        """Return what the search finds for each line, under rules that are relaxed as far as they must be."""
        search = partial(self._search, given, request, options)
        found = search_relaxed(len(given), request.rules.relaxations(), search)
        for line, each in zip(given, found, strict=True):
            if each is None:
                raise UserError(
                    f"the model finds no {request.direction.written} for '{line.text}' even without rules; its "
                    f"vocabulary has only {len(self.vocabulary)} tokens"
                )
        return [request.kept(each) for each in found if each is not None]

    def _search(
        self,
        given: Sequence[GivenLine],
        request: LineRequest,
        options: SearchOptions,
        numbers: Sequence[int],
        rules: Rules,
    ) -> list[BeamResult | None]:
        """Answer some of the lines under rules, with a second beam where candidates are to differ."""
        lines, planner = [given[number] for number in numbers], Planner(self.table, rules, request.direction)
        plans = [planner.plan(line.text, line.locks) for line in lines]
        copies = 2 if request.differ else 1
        planned = [plan for plan in plans for _ in range(copies)]
        processors: list[LogitsProcessor] = [PlannedLines(planned, self.table)]
        if request.differ:
            rows = min(max(DIVERSE_BEAM, 2 * request.wanted), MAX_ROWS)
            sizes = [*options.beam_sizes(1), rows] * len(plans)
            options = replace(options, beam_size=sizes, n_best=max(sizes))
            processors.append(DiverseBeamPenalty(plans))
        options = replace(options, processors=processors)
        encoded = self._encode([line.text for line in lines], request.direction)
        written = decode(self.step_model, *encoded, options, copies=copies)
        tokens = self.vocabulary.decode
        texts = [
            [(plan.text(tokens(h.tokens)), h) for h in own]
            for own, plan in zip(written, planned, strict=True)
        ]
        if not request.differ:
            return [BeamResult(own, plan) if own else None for own, plan in zip(texts, plans, strict=True)]
        divisor = length_divisor(options.length_penalty, options.alpha)

        def without_diversity(hypothesis: Hypothesis, plan: LinePlan) -> Hypothesis:
            """Return it with the rank that it has without `DiverseBeamPenalty`."""
            rank = hypothesis.log_prob - plan.penalty(hypothesis.tokens)
            return replace(hypothesis, rank_score=rank / divisor(len(hypothesis.tokens) + 1))

        # Even inputs: the beams; odd ones: the second beams of the same lines.
        return [
            BeamResult(own, plan, [(text, without_diversity(h, plan)) for text, h in diverse])
            if own
            else None
            for own, diverse, plan in zip(texts[::2], texts[1::2], plans, strict=True)
        ]

    def _encode(self, lines: Sequence[str], direction: Direction) -> tuple[np.ndarray, np.ndarray]:
        """Return ids of what asks for the answers to lines, [B, S], and their lengths [B]."""
        return encode_sources([np.asarray(direction.source(self.vocabulary, line)) for line in lines])

    def greedy(self, sources: Sequence[np.ndarray]) -> list[str]:
        """Answer encoded lines greedily, without rules and by the fast engine, to show a model in training."""
        longest = self.config.decoding.max_length
        options = SearchOptions(strategy="greedy", max_length=longest, processors=[NO_SPECIAL_TOKENS])
        found = decode(self.step_model, *encode_sources(sources), options)
        return ["".join(self.vocabulary.decode(hypotheses[0].tokens)) for hypotheses in found]

    def predict_records(
        self,
        texts: Sequence[str],
        n_best: int | None = None,
        template: str | None = None,
        second: bool = False,
        known: bool = False,
    ) -> Iterable[Record]:
        """Answer as JSON records: `{"first": …, "predictions": [{"text", "score", "form"}, …]}`.

        A `template` holds for all texts. With `second` they are 下联, under the key "second", and 上联 are written.
        With `known` a prediction has the nearest couplet of the training corpus, `{"first", "second", "distance"}`.
        """
        key = "second" if second else "first"
        answers = self.predict(texts, n_best, template=template, known=known, second=second)
        for text, predictions in zip(texts, answers, strict=True):
            yield {key: text, "predictions": [prediction.as_dict() for prediction in predictions]}

    def format_record(self, record: Record) -> str:
        predictions, given = record["predictions"], record["second" if "second" in record else "first"]
        notes = [notes_of(prediction) for prediction in predictions]
        if len(predictions) == 1:
            return f"{given}\t{predictions[0]['text']}{notes[0]}"
        scored = (
            f"  {p['score']:8.4f}  {p['text']}{note}" for p, note in zip(predictions, notes, strict=True)
        )
        return "\n".join([given, *scored])

    @property
    def longest_line(self) -> int:
        """Greatest number of characters in a line."""
        return min(self.config.data.max_length, self.config.decoding.max_length)

    def decoding_summary(self) -> str:
        rerank, engine = self.config.rerank, f", {self.config.decoding.engine} engine"
        beam = engine if self.config.decoding.strategy == "beam" else ""
        ordered = f", {rerank.candidates} candidates ordered by reverse {rerank.reverse:g} too"
        rules = describe(self.config.rules)
        return f"{self.search_summary()}{beam}, {rules}{ordered if rerank.reverse else ''}"

    def _prediction(
        self, line: str, candidate: Candidate, request: LineRequest, with_known: bool
    ) -> CoupletPrediction:
        (text, hypothesis), direction, broken, known = candidate, request.direction, list[str](), None
        pair = direction.pair(line, text)
        form = form_report(*pair)
        if request.decoding.engine != "reference":
            broken = broken_rules(line, text, form, request.rules, direction)
        if with_known:
            known = self.nearest_known(*pair, ["first" if direction.writes_first else "second"])
        return CoupletPrediction(text, hypothesis.score, form, broken, known)
