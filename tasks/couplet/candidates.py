"""Candidates of a line: ordered by both directions of a model, and made to differ.

Candidates are ordered by how likely they make the line that was given, too (the noisy channel). A beam's candidates
differ in a character or two. So a second beam grows in the same steps and pays for what the best rows of the first
one write; of the texts of both those are taken, one by one, that score high and have little in common with the ones
taken before (Carbonell & Goldstein 1998, "The Use of MMR", equation 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis, StepModel, TextReader
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.decoding.search import text_log_probs
from paddle_dialog.tasks.couplet.line_plan import LinePlan, rows_of_inputs
from paddle_dialog.tasks.couplet.prompts import TO_SECOND, Direction, encode_sources
from paddle_dialog.tasks.couplet.rules import Rules
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle_dialog.config.schema import DecodingConfig

Candidate = tuple[str, Hypothesis]  # the answer as shown, and how it was written
BEAM_ROWS = 5  # of the first beam, whose next characters the second one pays for
PENALTY = 1.5  # nats of a character that all of them write
LIKENESS = 0.5  # nats a token that having all characters in common with one taken before costs
DIVERSE_BEAM = 20  # least rows of the second beam


@dataclass(frozen=True)
class ReverseModel:
    """A model of the line that was given, given its answer: one trained in both directions."""

    step_model: StepModel  # of the network
    vocabulary: Vocabulary  # of both lines

    def scores(
        self, lines: Sequence[str], answers: Sequence[Sequence[str]], direction: Direction = TO_SECOND
    ) -> list[np.ndarray]:
        """Return log p(line | answer) per token of the K answers to each line, float64 [K] each."""
        sources, targets = self._encode(lines, answers, direction)
        if not targets:
            return [np.zeros(0) for _ in answers]
        totals = text_log_probs(self.step_model, *sources, targets)
        scores = totals / [len(target) + 1 for target in targets]
        return np.split(scores, np.cumsum([len(own) for own in answers])[:-1])

    def read(self, lines: Sequence[str], answers: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return what `scores` does of a 下联 to each line, [N], and the model's mean states over the line, [N, D].

        The model must offer `TextReader`.
        """
        sources, targets = self._encode(lines, [[answer] for answer in answers], TO_SECOND)
        model = self.step_model
        assert targets and isinstance(model, TextReader)
        states = model.text_states(*sources, targets, np.arange(len(targets)))
        means = np.stack([state.mean(axis=0) for state in states])  # [N, D]
        totals = model.state_log_probs(states, targets)
        return totals / [len(target) + 1 for target in targets], means

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
