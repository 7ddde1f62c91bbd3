"""The search for the answers to a batch of lines: under the rules of form, ordered, and made to differ.

Candidates are ordered by how likely they make the line that was given, too (the noisy channel). A beam's candidates
differ in a character or two. So a second beam grows in the same steps and pays for what the best rows of the first
one write; of the texts of both those are taken, one by one, that score high and have little in common with the ones
taken before (Carbonell & Goldstein 1998, "The Use of MMR", equation 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.config.schema import MOST_ROWS
from paddle_dialog.decoding.interface import Hypothesis, StepModel, TextReader
from paddle_dialog.decoding.processors import NO_SPECIAL_TOKENS, LogitsProcessor, Prefixes
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.decoding.search import SearchOptions, decode, length_divisor, search_relaxed
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.tasks.couplet.line_plan import (
    CharacterTable,
    LinePlan,
    PlannedLines,
    Planner,
    rows_of_inputs,
)
from paddle_dialog.tasks.couplet.prompts import TO_SECOND, Direction, encode_sources, knows_marks
from paddle_dialog.tasks.couplet.rules import Rules
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.config.schema import DecodingConfig

Candidate = tuple[str, Hypothesis]  # the answer as shown, and how it was written
BEAM_ROWS = 5  # of the first beam, whose next characters the second one pays for
PENALTY = 1.5  # nats of a character that all of them write
LIKENESS = 0.5  # nats a token that having all characters in common with one taken before costs
DIVERSE_BEAM = 20  # least rows of the second beam


@dataclass(frozen=True)
class ReverseModel:
    """A model of the line that was given, given its answer: one trained in both directions.

    Raises:
        UserError: the model knows one direction alone.
    """

    step_model: StepModel  # of the network
    vocabulary: Vocabulary  # of both lines

    def __post_init__(self) -> None:
        if not knows_marks(self.vocabulary):
            raise UserError(
                "rerank.reverse: this bundle knows only 下联 for 上联; set it to 0, or take the shipped "
                "pretrained/couplet"
            )

    def scores(
        self, lines: Sequence[str], answers: Sequence[Sequence[str]], direction: Direction = TO_SECOND
    ) -> list[np.ndarray]:
        """Return log p(line | answer) per token of the K answers to each line, float64 [K] each."""
        sources, targets = self._encode(lines, answers, direction)
        if not targets:
            return [np.zeros(0) for _ in answers]
        return _split(_per_token(text_log_probs(self.step_model, *sources, targets), targets), answers)

    def read(
        self, lines: Sequence[str], answers: Sequence[Sequence[str]]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return what `scores` does of 下联, and the model's mean states over each 上联 after them, [K, D] each.

        The model must offer `TextReader`.
        """
        sources, targets = self._encode(lines, answers, TO_SECOND)
        model = self.step_model
        assert targets and isinstance(model, TextReader)
        states = model.text_states(*sources, targets, np.arange(len(targets)))
        means = np.stack([state.mean(axis=0) for state in states])  # [all, D]
        totals = _per_token(model.state_log_probs(states, targets), targets)
        return _split(totals, answers), _split(means, answers)

    def _encode(
        self, lines: Sequence[str], answers: Sequence[Sequence[str]], direction: Direction
    ) -> tuple[tuple[np.ndarray, np.ndarray], list[list[int]]]:
        """Return all answers as sources, and for each the line that it answers as its target."""
        texts = [text for own in answers for text in own]
        sources = encode_sources([np.asarray(direction.back.source(self.vocabulary, text)) for text in texts])
        targets = [
            self.vocabulary.encode(line) for line, own in zip(lines, answers, strict=True) for _ in own
        ]
        return sources, targets


def _per_token(totals: np.ndarray, targets: Sequence[Sequence[int]]) -> np.ndarray:
    return totals / [len(target) + 1 for target in targets]


def _split(values: np.ndarray, answers: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Return the values of the answers to each line."""
    return np.split(values, np.cumsum([len(own) for own in answers])[:-1])


@dataclass(frozen=True)
class BeamResult:
    """What the search found for one line."""

    candidates: list[Candidate]  # best first
    plan: LinePlan  # that they keep
    diverse: Sequence[Candidate] = ()  # of the second beam


def choose(result: BeamResult, wanted: int, distance: float) -> list[Candidate]:
    """Choose candidates of one line that differ.

    Args:
        result: its best candidate stays the first.
        wanted: how many.
        distance: least share of the free characters in which any two of them differ; ones that are too alike fill up
            where there are too few.
    """
    candidates = list({text: (text, h) for text, h in [*result.diverse, *result.candidates]}.values())
    if not result.candidates:
        return candidates[:wanted]
    weights = free_positions(result.plan)  # [T]
    free = int(weights.sum())
    # The rounding of a third times three is not a whole character.
    most = free - math.ceil(distance * free - 1e-9)
    texts = np.full((len(candidates), len(weights)), -1, dtype=np.int64)  # [K, T]
    for row, (_, hypothesis) in zip(texts, candidates, strict=True):
        row[: len(hypothesis.tokens)] = hypothesis.tokens[: len(row)]
    scores = np.array([h.rank_score / (len(h.tokens) + 1) for _, h in candidates])  # [K]
    common = np.zeros(len(candidates), dtype=np.int64)  # most characters in common with one taken
    taken: list[int] = []
    best = first = [text for text, _ in candidates].index(result.candidates[0][0])
    while True:
        taken.append(best)
        common = np.maximum(common, ((texts == texts[best]) & (texts >= 0)) @ weights)
        left = np.setdiff1d(np.arange(len(candidates)), taken)
        if len(taken) == wanted or not len(left):
            break
        pool = left[common[left] <= most] if (common[left] <= most).any() else left
        best = int(pool[np.argmax(scores[pool] - LIKENESS * common[pool] / max(free, 1))])
    others = sorted(taken[1:], key=lambda place: -candidates[place][1].rank_score)
    return [candidates[place] for place in (first, *others)]


def free_positions(plan: LinePlan) -> np.ndarray:
    """Return how many positions the choice at each position decides, [T].

    A character that the given line's repetitions bring back counts for all its places, at the first of them; a forced
    one (punctuation, a locked character) for none.
    """
    weights = np.zeros(len(plan.origins), dtype=np.int64)
    for place in range(len(plan.origins)):
        if place not in plan.forced:
            weights[plan.origin(place)] += 1
    return weights


class DiverseBeamPenalty:
    """Penalises for every second input of a batch what the best rows of the input before it are about to write.

    Args:
        plans: one for each two inputs, which are copies of one.
    """

    def __init__(self, plans: Sequence[LinePlan]) -> None:
        self._weights = [free_positions(plan) for plan in plans]

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        place, before, heads = prefixes.length, -1, np.zeros(0, dtype=np.int64)
        for number, rows in rows_of_inputs(prefixes):
            weights = self._weights[number // 2]
            if place >= len(weights) or not weights[place]:
                continue
            if number % 2 == 0:  # its best row is the first
                before, heads = number, scores[rows][:BEAM_ROWS].argmax(axis=1)
            elif before == number - 1:
                tokens, counts = np.unique(heads, return_counts=True)
                scores[rows, tokens] -= PENALTY * counts / len(heads)


@dataclass(frozen=True)
class LineRequest:
    """What is wanted of the lines of a batch."""

    rules: Rules  # of form
    decoding: DecodingConfig  # how to search
    wanted: int  # candidates for each line
    distance: float  # how far apart they are, see `choose`; 0 is as the beam has them
    direction: Direction  # which line is given
    # Says which texts are not to be written; None refuses none.
    refused: Callable[[str], bool] | None = None

    @property
    def differ(self) -> bool:
        """Whether candidates are searched for that keep their distance."""
        searched = self.decoding.strategy == "beam" and self.decoding.engine == "fast"
        return searched and self.wanted > 1 and self.distance > 0

    def kept(self, result: BeamResult) -> BeamResult:
        """Return a result without the candidates that are refused."""
        if self.refused is None:
            return result
        lists = (result.candidates, result.diverse)
        kept = [[each for each in own if not self.refused(each[0])] for own in lists]
        return replace(result, candidates=kept[0], diverse=kept[1])


class LineSearch:
    """Finds candidates with one trained model.

    Args:
        network: the trained network, which `decoding.engine: reference` needs.

    Raises:
        UserError: `rerank.reverse` is not 0, and the model knows one direction alone.
    """

    def __init__(
        self,
        config: CoupletConfig,
        step_model: StepModel,
        table: CharacterTable,
        network: Callable[[], nn.Layer],
    ) -> None:
        self._config, self._step_model, self._network = config, step_model, network
        self._table, self._vocabulary = table, table.vocabulary
        self._reverse = ReverseModel(step_model, table.vocabulary) if config.rerank.reverse else None

    def candidates(
        self, lines: Sequence[str], locks: Sequence[Mapping[int, str]], request: LineRequest
    ) -> list[list[Candidate]]:
        """Find at most `request.wanted` candidates for each line, best first; none where all are refused."""
        wanted, pool = request.wanted, self._config.rerank.candidates
        options = self._options(request)
        sources = [np.asarray(request.direction.source(self._vocabulary, line)) for line in lines]
        if request.decoding.engine == "reference":
            written = self._by_reference(sources, options)
            return [own[:wanted] for own in self._ordered(lines, written, request.direction)]
        found = self._by_rules(lines, sources, locks, request, options)
        best = self._ordered(lines, [each.candidates[:pool] for each in found], request.direction)
        ordered = [[*own, *each.candidates[pool:]] for own, each in zip(best, found, strict=True)]
        if not request.differ:
            return [own[:wanted] for own in ordered]
        found = [replace(each, candidates=own) for each, own in zip(found, ordered, strict=True)]
        return [choose(each, wanted, request.distance) for each in found]

    def greedy(self, sources: Sequence[np.ndarray]) -> list[list[Hypothesis]]:
        """Answer encoded lines greedily, without rules; by the fast engine whatever the config says."""
        longest = self._config.decoding.max_length
        options = SearchOptions(strategy="greedy", max_length=longest, processors=[NO_SPECIAL_TOKENS])
        return decode(self._step_model, *encode_sources(sources), options)

    def _options(self, request: LineRequest) -> SearchOptions:
        decoding, wanted, pool = request.decoding, request.wanted, self._config.rerank.candidates
        handed = wanted
        if request.differ or (request.refused is not None and decoding.strategy == "beam"):
            # How many are wanted must not change what is re-ranked; of those that are refused, others take the place.
            handed = decoding.beam_size if request.differ else max(wanted, decoding.beam_size)
        if self._reverse is not None and decoding.strategy != "greedy":
            handed = max(handed, pool)
        return SearchOptions.of(decoding, handed, self._config.seed, [NO_SPECIAL_TOKENS])

    def _ordered(
        self, lines: Sequence[str], candidates: Sequence[list[Candidate]], direction: Direction
    ) -> list[list[Candidate]]:
        """Return the candidates of each line, best first; equal sums stay in the order of the search."""
        if self._reverse is None:
            return list(candidates)
        scores = self._reverse.scores(lines, [[text for text, _ in own] for own in candidates], direction)
        ordered = []
        for own, back in zip(candidates, scores, strict=True):
            sums = np.array([h.score for _, h in own]) + self._config.rerank.reverse * back
            ordered.append([own[place] for place in np.argsort(-sums, kind="stable")])
        return ordered

    def _by_reference(self, sources: Sequence[np.ndarray], options: SearchOptions) -> list[list[Candidate]]:
        """Search with the reference engine, which knows no rules."""
        from paddle_dialog.decoding.reference import reference_beam_search  # imports Paddle

        encoded, longest = encode_sources(sources), self._config.decoding.max_length
        (beam,), n_best = options.beam_sizes(1), options.n_best
        found = reference_beam_search(self._network(), *encoded, beam, n_best, longest)
        return [[("".join(self._vocabulary.decode(h.tokens)), h) for h in own] for own in found]

    def _by_rules(
        self,
        lines: Sequence[str],
        sources: Sequence[np.ndarray],
        locks: Sequence[Mapping[int, str]],
        request: LineRequest,
        options: SearchOptions,
    ) -> list[BeamResult]:
        """Return what the search finds for each line, under rules that are relaxed as far as they must be."""

        def search(numbers: Sequence[int], rules: Rules) -> list[BeamResult | None]:
            planner = Planner(self._table, rules, request.direction)
            plans = [planner.plan(lines[number], locks[number]) for number in numbers]
            results = self._written([sources[number] for number in numbers], plans, options, request)
            return [each if each.candidates else None for each in results]

        found = search_relaxed(len(lines), request.rules.relaxations(), search)
        for line, each in zip(lines, found, strict=True):
            if each is None:
                raise UserError(
                    f"the model finds no {request.direction.written} for '{line}' even without rules; its vocabulary "
                    f"has only {len(self._vocabulary)} tokens"
                )
        return [request.kept(each) for each in found if each is not None]

    def _written(
        self,
        sources: Sequence[np.ndarray],
        plans: Sequence[LinePlan],
        options: SearchOptions,
        request: LineRequest,
    ) -> list[BeamResult]:
        """Search once under a plan for each line, with a second beam where candidates are to differ."""
        copies = 2 if request.differ else 1
        planned = [plan for plan in plans for _ in range(copies)]
        processors: list[LogitsProcessor] = [PlannedLines(planned, self._table)]
        if request.differ:
            rows = min(max(DIVERSE_BEAM, 2 * request.wanted), MOST_ROWS)
            sizes = [*options.beam_sizes(1), rows] * len(plans)
            options = replace(options, beam_size=sizes, n_best=max(sizes))
            processors.append(DiverseBeamPenalty(plans))
        options = replace(options, processors=processors)
        written = decode(self._step_model, *encode_sources(sources), options, copies=copies)
        tokens = self._vocabulary.decode
        texts = [
            [(plan.text(tokens(h.tokens)), h) for h in own]
            for own, plan in zip(written, planned, strict=True)
        ]
        if not request.differ:
            return [BeamResult(own, plan) for own, plan in zip(texts, plans, strict=True)]
        divisor = length_divisor(options.length_penalty, options.alpha)

        def without_diversity(hypothesis: Hypothesis, plan: LinePlan) -> Hypothesis:
            """Return it with the rank that it has without `DiverseBeamPenalty`."""
            rank = hypothesis.log_prob - plan.penalty(hypothesis.tokens)
            return replace(hypothesis, rank_score=rank / divisor(len(hypothesis.tokens) + 1))

        return [
            BeamResult(own, plan, [(text, without_diversity(h, plan)) for text, h in diverse])
            for own, diverse, plan in zip(texts[::2], texts[1::2], plans, strict=True)
        ]
