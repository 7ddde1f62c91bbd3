"""The search for the answers to a batch of lines: under the rules of form, ordered, and made to differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.config.schema import MOST_ROWS
from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.processors import NO_SPECIAL_TOKENS, LogitsProcessor
from paddle_dialog.decoding.search import SearchOptions, decode, length_divisor, search_relaxed
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.choice import BeamResult, DiverseBeamPenalty, choose, without_penalty
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.tasks.couplet.direction import Direction, encode_sources
from paddle_dialog.tasks.couplet.line_plan import CharacterTable, LinePlan, PlannedLines, Planner
from paddle_dialog.tasks.couplet.rerank import Candidate, ReverseModel, rerank
from paddle_dialog.tasks.couplet.rules import Rules

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.config.schema import DecodingConfig

DIVERSE_BEAM = 20  # least rows of the second beam


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
        """Find at most `request.wanted` candidates for each line of a batch, best first; none where all are refused."""
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
        if self._reverse is None:
            return list(candidates)
        return rerank(lines, candidates, self._reverse, self._config.rerank.reverse, direction)

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
        return [
            BeamResult(own, plan, without_penalty(diverse, plan, divisor))
            for own, diverse, plan in zip(texts[::2], texts[1::2], plans, strict=True)
        ]
