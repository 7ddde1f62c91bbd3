"""The search for the candidates of a batch of lines: by rules, ordered, and made to differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.processors import NO_SPECIAL_TOKENS, LogitsProcessor
from paddle_dialog.decoding.reference import reference_beam_search
from paddle_dialog.decoding.search import SearchOptions, decode, length_divisor
from tasks.couplet.choice import choose
from tasks.couplet.config import CoupletConfig
from tasks.couplet.data.encoding import encode_sources
from tasks.couplet.rerank import Reranker
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.constraints import Rules
from tasks.couplet.rules.direction import Direction
from tasks.couplet.rules.search import Candidate, Found, search_by_rules

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
        valued: whether the reward model may order the candidates, which takes a wide beam.
    """

    rules: Rules
    decoding: DecodingConfig
    wanted: int
    distance: float
    direction: Direction
    valued: bool = True


class LineSearch:
    """Finds candidates with one trained model.

    Args:
        config: how to search, choose and order.
        step_model: of the network.
        table: the characters of its vocabulary.
        network: the trained network, which `decoding.engine: reference` needs.
        reranker: orders the candidates.
    """

    def __init__(
        self,
        config: CoupletConfig,
        step_model: StepModel,
        table: CharacterTable,
        network: Callable[[], nn.Layer],
        reranker: Reranker,
    ) -> None:
        self._config, self._step_model = config, step_model
        self._table, self._vocabulary = table, table.vocabulary
        self._network, self._reranker = network, reranker

    def candidates(
        self, lines: Sequence[str], locks: Sequence[Mapping[int, str]], request: LineRequest
    ) -> list[list[Candidate]]:
        """Find the candidates of a batch; those of lines whose answers the reward model orders in a wider beam.

        Args:
            lines: that are given, normalised.
            locks: for each line, position → character.
            request: what is wanted of all of them.

        Returns:
            For each line at most `request.wanted` candidates, at least one, the best first.
        """
        settings, pools = self._config.rerank, dict[int, list[int]]()
        for number, line in enumerate(lines):
            valued = request.valued and self._reranker.values(line, request.direction)
            pool = settings.reward_candidates if valued else settings.candidates
            pools.setdefault(pool, []).append(number)
        answers: dict[int, list[Candidate]] = {}
        for pool, numbers in pools.items():
            batch = [lines[number] for number in numbers], [locks[number] for number in numbers]
            answers.update(zip(numbers, self._ordered(*batch, request, pool), strict=True))
        return [answers[number] for number in range(len(lines))]

    def _ordered(
        self, lines: Sequence[str], locks: Sequence[Mapping[int, str]], request: LineRequest, pool: int
    ) -> list[list[Candidate]]:
        """Find candidates, the first `pool` of which are re-ranked; see `candidates`."""
        decoding, wanted, direction = request.decoding, request.wanted, request.direction
        apart = wanted > 1 and decoding.strategy == "beam" and decoding.engine == "fast" and request.distance
        # Where further candidates are searched for apart, their number must not change what is re-ranked.
        reranked = self._config.rerank.is_active and decoding.strategy != "greedy"
        handed = wanted if not reranked else pool if apart else max(wanted, pool)
        options = SearchOptions.of(decoding, handed, self._config.seed, [NO_SPECIAL_TOKENS])
        sources = [np.asarray(direction.source(self._vocabulary, line)) for line in lines]
        order = partial(self._reranker.order, direction=direction, valued=request.valued)
        if decoding.engine == "reference":
            ids, lengths = encode_sources(sources)
            written = reference_beam_search(
                self._network(), ids, lengths, options.beam_size, options.n_best, decoding.max_length
            )
            texts = [[("".join(self._vocabulary.decode(h.tokens)), h) for h in each] for each in written]
            return [each[:wanted] for each in order(lines, texts)]
        search = partial(self._search, sources, options)
        found = search_by_rules(lines, locks, request.rules, self._table, search, direction)
        ordered = order(lines, [each.candidates[:pool] for each in found])
        if not apart:
            both = zip(ordered, found, strict=True)
            return [[*best, *each.candidates[pool:]][:wanted] for best, each in both]
        found = [replace(each, candidates=best) for each, best in zip(found, ordered, strict=True)]
        chosen = self._apart(sources, options, found, request)
        others = order(lines, [each[1:] for each in chosen])
        return [[each[0], *rest] for each, rest in zip(chosen, others, strict=True)]

    def _search(
        self,
        sources: Sequence[np.ndarray],
        options: SearchOptions,
        numbers: Sequence[int],
        processors: Sequence[LogitsProcessor],
    ) -> list[list[Hypothesis]]:
        """Search for the answers to some of the lines, given by number, under rules."""
        return self._decode([sources[number] for number in numbers], replace(options, processors=processors))

    def _apart(
        self,
        sources: Sequence[np.ndarray],
        options: SearchOptions,
        found: Sequence[Found],
        request: LineRequest,
    ) -> list[list[Candidate]]:
        """Return the best candidate of each line, and others that keep their distance."""
        wide = max(self._config.choice.beam_size, request.wanted)
        further = replace(options, beam_size=wide, n_best=wide)
        divisor = length_divisor(options.length_penalty, options.alpha)
        search = partial(self._search, sources, further)
        banned = request.rules.banned
        return choose(found, request.wanted, request.distance, banned, self._table, search, divisor)

    def greedy(self, sources: Sequence[np.ndarray]) -> list[list[Hypothesis]]:
        """Answer encoded lines greedily, without rules; by the fast engine whatever the config says."""
        longest = self._config.decoding.max_length
        return self._decode(
            sources, SearchOptions(strategy="greedy", max_length=longest, processors=[NO_SPECIAL_TOKENS])
        )

    def _decode(self, sources: Sequence[np.ndarray], options: SearchOptions) -> list[list[Hypothesis]]:
        """Search for the answers to encoded lines."""
        return decode(self._step_model, *encode_sources(list(sources)), options)
