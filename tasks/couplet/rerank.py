"""Orders the candidates by a weighted sum of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from paddle_dialog.decoding.interface import StepModel, TextReader
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.config import CoupletRerankConfig
from tasks.couplet.data.encoding import encode_sources
from tasks.couplet.marks import second_source
from tasks.couplet.reward import RewardModel
from tasks.couplet.rules.clauses import has_clauses
from tasks.couplet.rules.direction import TO_SECOND, Direction
from tasks.couplet.rules.form import form_report
from tasks.couplet.rules.search import Candidate


@dataclass(frozen=True)
class ReverseModel:
    """A model of the line that was given, given its answer.

    Args:
        step_model: of the network.
        vocabulary: of both lines.
        source: what asks the network for the line that an answer answers, without end token; by default as in a
            bundle trained on swapped pairs.
    """

    step_model: StepModel
    vocabulary: Vocabulary
    source: Callable[[Vocabulary, str], list[int]] = second_source

    def scores(self, lines: Sequence[str], found: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Return log p(line | answer) per token of all answers to each line, a float64 array [K] for each."""
        pairs = _pairs(lines, found)
        if not pairs:
            return [np.zeros(0) for _ in found]
        targets = [self.vocabulary.encode(line) for _, line in pairs]
        totals = text_log_probs(self.step_model, *self._sources(pairs), targets)
        return _split(totals / [len(target) + 1 for target in targets], found)

    def read(
        self, lines: Sequence[str], found: Sequence[Sequence[str]]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return what `scores` does, and the model's mean states over each line after its answers, [K, D] for each.

        The model must offer `TextReader`.
        """
        pairs, model = _pairs(lines, found), self.step_model
        assert pairs and isinstance(model, TextReader)
        targets = [self.vocabulary.encode(line) for _, line in pairs]
        states = model.text_states(*self._sources(pairs), targets, np.arange(len(pairs)))
        totals = model.state_log_probs(states, targets)
        means = np.stack([state.mean(axis=0) for state in states])  # [all, D]
        return _split(totals / [len(target) + 1 for target in targets], found), _split(means, found)

    def _sources(self, pairs: Sequence[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray]:
        return encode_sources([np.asarray(self.source(self.vocabulary, text)) for text, _ in pairs])


def _pairs(lines: Sequence[str], found: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Return each answer with the line that it answers."""
    return [(text, line) for line, texts in zip(lines, found, strict=True) for text in texts]


def _split(values: np.ndarray, found: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Return the values of the answers to each line."""
    return np.split(values, np.cumsum([len(texts) for texts in found])[:-1])


class Reranker:
    """Orders n-best lists by the weights of one config.

    Args:
        config: the weights.
        reverse: for each direction what scores the given line; needed where its weight is not 0.
        reward: gives the reward model of 下联; None where there is none.
    """

    def __init__(
        self,
        config: CoupletRerankConfig,
        reverse: Mapping[Direction, ReverseModel] | None = None,
        reward: Callable[[], RewardModel | None] = lambda: None,
    ) -> None:
        self._config = config
        self._reverse = reverse or {}
        self._reward = reward

    def values(self, line: str, direction: Direction) -> bool:
        """Return whether the reward model orders the answers to a line: it learned from 下联 of several clauses."""
        wanted = self._config.reward and not direction.writes_first and has_clauses(line)
        return bool(wanted) and self._reward() is not None

    def order(
        self,
        lines: Sequence[str],
        found: Sequence[list[Candidate]],
        direction: Direction = TO_SECOND,
        valued: bool = True,
    ) -> list[list[Candidate]]:
        """Return the candidates of each line, best first; equal sums stay in the order of the search.

        Args:
            lines: that are given, normalised.
            found: candidates of each line in the order of the search.
            direction: which line is given.
            valued: whether the reward model may order them, see `values`.
        """
        if not self._config.is_active:
            return list(found)
        texts = [[text for text, _ in candidates] for candidates in found]
        return [
            _sorted(candidates, self._sums(line, candidates, scores))
            for line, candidates, scores in zip(
                lines, found, self._read(lines, texts, direction, valued), strict=True
            )
        ]

    def _read(
        self, lines: Sequence[str], texts: Sequence[Sequence[str]], direction: Direction, valued: bool
    ) -> list[np.ndarray]:
        """Return what another reading of the K candidates of each line adds to their sums, float64 [K]."""
        added = [np.zeros(len(own)) for own in texts]
        by_reward = [
            number
            for number, line in enumerate(lines)
            if valued and texts[number] and self.values(line, direction)
        ]
        for number in by_reward:
            reward = self._reward()
            assert reward is not None
            added[number] = self._config.reward * reward(lines[number], texts[number])
        others = [number for number in range(len(lines)) if number not in by_reward]
        if self._config.reverse and others:
            reverse = self._reverse[direction]
            scores = reverse.scores(
                [lines[number] for number in others], [texts[number] for number in others]
            )
            for number, own in zip(others, scores, strict=True):
                added[number] = self._config.reverse * own
        return added

    def _sums(self, line: str, candidates: list[Candidate], added: np.ndarray) -> np.ndarray:
        """Compute the sum of each of K candidates, float64 [K]."""
        weights, texts = self._config, [text for text, _ in candidates]
        sums = weights.model * np.array([hypothesis.score for _, hypothesis in candidates]) + added
        if weights.tone_opposed:
            sums += weights.tone_opposed * np.array([form_report(line, text).tone_opposed for text in texts])
        if weights.consensus:
            sums += weights.consensus * consensus(texts)
        return sums


def consensus(texts: Sequence[str]) -> np.ndarray:
    """Return for each text the mean share of its characters that the other texts have at the same positions.

    Choosing the text most like all others is minimum Bayes risk decoding (Kumar & Byrne 2004, "Minimum
    Bayes-Risk Decoding for Statistical Machine Translation") with the Hamming similarity as its gain, every
    candidate weighing the same.

    Args:
        texts: K candidates.

    Returns:
        Shares in 0–1, [K]; 0 for a single text.
    """
    if len(texts) < 2:
        return np.zeros(len(texts))
    alike = np.array([[_similarity(one, other) for other in texts] for one in texts])  # [K, K]
    return (alike.sum(axis=1) - alike.diagonal()) / (len(texts) - 1)


def _similarity(one: str, other: str) -> float:
    return sum(a == b for a, b in zip_longest(one, other)) / max(len(one), len(other), 1)


def _sorted(candidates: list[Candidate], sums: np.ndarray) -> list[Candidate]:
    return [candidates[place] for place in np.argsort(-sums, kind="stable")]
