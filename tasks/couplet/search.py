"""The search for the answers to a batch of lines: under the rules of form, ordered, and made to differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.processors import NO_SPECIAL_TOKENS, LogitsProcessor
from paddle_dialog.decoding.reference import reference_beam_search
from paddle_dialog.decoding.relaxing import search_relaxed
from paddle_dialog.decoding.search import SearchOptions, decode, length_divisor
from paddle_dialog.errors import UserError
from tasks.couplet.choice import Found, choose
from tasks.couplet.config import CoupletConfig
from tasks.couplet.direction import Direction, encode_sources
from tasks.couplet.line_plan import CharacterTable, LinePlan, PlannedLines, Planner
from tasks.couplet.rerank import Candidate, ReverseModel, rerank
from tasks.couplet.rules import Rules

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.config.schema import DecodingConfig


@dataclass(frozen=True)
class LineRequest:
    """What is wanted of the lines of a batch.

    Args:
        rules: of form.
        decoding: how to search.
        wanted: candidates for each line.
        distance: how far apart they are, see `choose`; 0 is as the beam has them.
        direction: which line is given.
        refused: says which texts are not to be written; None refuses none.
    """

    rules: Rules
    decoding: DecodingConfig
    wanted: int
    distance: float
    direction: Direction
    refused: Callable[[str], bool] | None = None

    @property
    def differ(self) -> bool:
        """Whether candidates are searched for that keep their distance."""
        searched = self.decoding.strategy == "beam" and self.decoding.engine == "fast"
        return searched and self.wanted > 1 and self.distance > 0

    def kept(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that are not refused."""
        return [each for each in candidates if self.refused is None or not self.refused(each[0])]


class LineSearch:
    """Finds candidates with one trained model.

    Args:
        config: how to search, choose and order.
        step_model: of the network.
        table: the characters of its vocabulary.
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
        """Find the candidates of a batch.

        Args:
            lines: that are given, normalised.
            locks: for each line, position → character.
            request: what is wanted of all of them.

        Returns:
            For each line at most `request.wanted` candidates, the best first; none where all are refused.
        """
        wanted, pool = request.wanted, self._config.rerank.candidates
        options = self._options(request)
        sources = [np.asarray(request.direction.source(self._vocabulary, line)) for line in lines]
        if request.decoding.engine == "reference":
            written = self._by_reference(sources, options)
            return [own[:wanted] for own in self._ordered(lines, written, request.direction)]
        found = self._by_rules(lines, sources, locks, request, options)
        best = self._ordered(lines, [each.candidates[:pool] for each in found], request.direction)
        if not request.differ:
            both = zip(best, found, strict=True)
            return [[*first, *each.candidates[pool:]][:wanted] for first, each in both]
        found = [replace(each, candidates=own) for each, own in zip(found, best, strict=True)]
        chosen = self._differing(sources, found, request, options)
        others = self._ordered(lines, [own[1:] for own in chosen], request.direction)
        return [[*own[:1], *rest] for own, rest in zip(chosen, others, strict=True)]

    def greedy(self, sources: Sequence[np.ndarray]) -> list[list[Hypothesis]]:
        """Answer encoded lines greedily, without rules; by the fast engine whatever the config says."""
        longest = self._config.decoding.max_length
        options = SearchOptions(strategy="greedy", max_length=longest, processors=[NO_SPECIAL_TOKENS])
        return decode(self._step_model, *encode_sources(sources), options)

    def _options(self, request: LineRequest) -> SearchOptions:
        decoding, wanted, pool = request.decoding, request.wanted, self._config.rerank.candidates
        handed = wanted
        if self._reverse is not None and decoding.strategy != "greedy":
            # Where further candidates are searched for apart, their number must not change what is re-ranked.
            handed = pool if request.differ else max(wanted, pool)
        if request.refused is not None and decoding.strategy == "beam":
            handed = max(handed, decoding.beam_size)  # some of them will go
        return SearchOptions.of(decoding, handed, self._config.seed, [NO_SPECIAL_TOKENS])

    def _ordered(
        self, lines: Sequence[str], candidates: Sequence[list[Candidate]], direction: Direction
    ) -> list[list[Candidate]]:
        if self._reverse is None:
            return list(candidates)
        return rerank(lines, candidates, self._reverse, self._config.rerank.reverse, direction)

    def _by_reference(self, sources: Sequence[np.ndarray], options: SearchOptions) -> list[list[Candidate]]:
        """Search with the reference engine, which knows no rules."""
        encoded, longest = encode_sources(sources), self._config.decoding.max_length
        beam, n_best = options.beam_size, options.n_best
        found = reference_beam_search(self._network(), *encoded, beam, n_best, longest)
        return [[("".join(self._vocabulary.decode(h.tokens)), h) for h in own] for own in found]

    def _by_rules(
        self,
        lines: Sequence[str],
        sources: Sequence[np.ndarray],
        locks: Sequence[Mapping[int, str]],
        request: LineRequest,
        options: SearchOptions,
    ) -> list[Found]:
        """Return what the search finds for each line, under rules that are relaxed as far as they must be."""

        def search(numbers: Sequence[int], rules: Rules) -> list[Found | None]:
            planner = Planner(self._table, rules, request.direction)
            plans = [planner.plan(lines[number], locks[number]) for number in numbers]
            written = self._written([sources[number] for number in numbers], plans, options)
            return [Found(own, plan) if own else None for own, plan in zip(written, plans, strict=True)]

        found: list[Found] = []
        for line, each in zip(
            lines, search_relaxed(len(lines), request.rules.relaxations(), search), strict=True
        ):
            if each is None:
                raise UserError(
                    f"the model finds no {request.direction.written} for '{line}' even without rules; its vocabulary "
                    f"has only {len(self._vocabulary)} tokens"
                )
            found.append(replace(each, candidates=request.kept(each.candidates)))
        return found

    def _differing(
        self,
        sources: Sequence[np.ndarray],
        found: Sequence[Found],
        request: LineRequest,
        options: SearchOptions,
    ) -> list[list[Candidate]]:
        """Return the best candidate of each line, and others that keep their distance."""
        wide = max(self._config.choice.beam_size, request.wanted)
        further = replace(options, beam_size=wide, n_best=wide)

        def search(numbers: Sequence[int], apart: LogitsProcessor) -> list[list[Candidate]]:
            plans = [found[number].plan for number in numbers]
            written = self._written([sources[number] for number in numbers], plans, further, [apart])
            return [request.kept(own) for own in written]

        divisor = length_divisor(options.length_penalty, options.alpha)
        return choose(found, request.wanted, request.distance, search, divisor)

    def _written(
        self,
        sources: Sequence[np.ndarray],
        plans: Sequence[LinePlan],
        options: SearchOptions,
        further: Sequence[LogitsProcessor] = (),
    ) -> list[list[Candidate]]:
        """Return the answers that the search writes, held to a plan each."""
        options = replace(options, processors=[PlannedLines(plans, self._table), *further])
        written = decode(self._step_model, *encode_sources(sources), options)
        tokens = self._vocabulary.decode
        return [
            [(plan.text(tokens(h.tokens)), h) for h in own] for own, plan in zip(written, plans, strict=True)
        ]
