"""Orders the candidates by how likely they make the line that was given, too (the noisy channel)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paddle_dialog.decoding.interface import Hypothesis, StepModel, TextReader
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.direction import TO_SECOND, Direction, encode_sources, knows_marks
from paddle_dialog.text.vocabulary import Vocabulary

Candidate = tuple[str, Hypothesis]  # the answer as shown, and how it was written


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


def rerank(
    lines: Sequence[str],
    candidates: Sequence[list[Candidate]],
    reverse: ReverseModel,
    weight: float,
    direction: Direction,
) -> list[list[Candidate]]:
    """Return the candidates of each line, best first; equal sums stay in the order of the search."""
    scores = reverse.scores(lines, [[text for text, _ in own] for own in candidates], direction)
    ordered = []
    for own, back in zip(candidates, scores, strict=True):
        sums = np.array([hypothesis.score for _, hypothesis in own]) + weight * back
        ordered.append([own[place] for place in np.argsort(-sums, kind="stable")])
    return ordered


def _per_token(totals: np.ndarray, targets: Sequence[Sequence[int]]) -> np.ndarray:
    return totals / [len(target) + 1 for target in targets]


def _split(values: np.ndarray, answers: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Return the values of the answers to each line."""
    return np.split(values, np.cumsum([len(own) for own in answers])[:-1])
