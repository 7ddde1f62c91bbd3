"""Orders the candidates by a weighted sum of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from paddle_dialog.decoding.interface import StepModel, TextReader
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.judge import Judge
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.config import CoupletRerankConfig
from tasks.couplet.data.encoding import encode_sources
from tasks.couplet.data.marks import second_source
from tasks.couplet.direction import TO_SECOND, Direction
from tasks.couplet.rules.form import form_report
from tasks.couplet.rules.search import Candidate


class Reading(NamedTuple):
    """A given line, read after each of its K candidates."""

    scores: np.ndarray  # log p(line | candidate) per token, float64 [K]
    states: np.ndarray  # the decoder's mean output over the line, [K, D]; [K, 0] where nobody wants it


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

    def read(self, lines: Sequence[str], texts: Sequence[Sequence[str]], judged: bool) -> list[Reading]:
        """Read each line after every one of its candidates.

        Args:
            lines: that were given.
            texts: candidates of each line.
            judged: whether the states are wanted.

        Raises:
            UserError: they are, and the model does not show them.
        """
        pairs = [(text, line) for line, own in zip(lines, texts, strict=True) for text in own]
        ends = np.cumsum([len(own) for own in texts])[:-1]
        if not pairs:
            return [Reading(np.zeros(0), np.zeros((0, 0))) for _ in texts]
        source, lengths = encode_sources(
            [np.asarray(self.source(self.vocabulary, text)) for text, _ in pairs]
        )
        targets = [self.vocabulary.encode(line) for _, line in pairs]
        means = np.zeros((len(pairs), 0))  # [N, 0]
        if judged:
            if not isinstance(self.step_model, TextReader):
                raise UserError(
                    "rerank.judge: this model shows no states to judge; set it to 0, or take a Transformer"
                )
            states = self.step_model.text_states(source, lengths, targets, np.arange(len(pairs)))
            means = np.stack([state.mean(axis=0) for state in states])  # [N, D]
            totals = self.step_model.state_log_probs(states, targets)
        else:
            totals = text_log_probs(self.step_model, source, lengths, targets)
        scores = totals / [len(target) + 1 for target in targets]  # [N]
        return [Reading(*own) for own in zip(np.split(scores, ends), np.split(means, ends), strict=True)]


class Reranker:
    """Orders n-best lists by the weights of one config.

    Args:
        config: the weights.
        reverse: for each direction what reads the given line; needed where its weight or the judge's is not 0.
        judge: of 下联, by the states of the 上联 read after them; None where there is none.
    """

    def __init__(
        self,
        config: CoupletRerankConfig,
        reverse: Mapping[Direction, ReverseModel] | None = None,
        judge: Judge | None = None,
    ) -> None:
        self._config = config
        self._reverse = reverse or {}
        self._judge = judge

    def order(
        self, lines: Sequence[str], found: Sequence[list[Candidate]], direction: Direction = TO_SECOND
    ) -> list[list[Candidate]]:
        """Return the candidates of each line, best first; equal sums stay in the order of the search.

        Args:
            lines: that are given, normalised.
            found: candidates of each line in the order of the search.
            direction: which line is given.
        """
        if not self._config.is_active:
            return list(found)
        reverse = self._reversed(lines, [[text for text, _ in candidates] for candidates in found], direction)
        return [
            _sorted(candidates, self._sums(line, candidates, own))
            for line, candidates, own in zip(lines, found, reverse, strict=True)
        ]

    def _reversed(
        self, lines: Sequence[str], texts: Sequence[Sequence[str]], direction: Direction
    ) -> list[np.ndarray]:
        """Return what the reverse direction and the judge add for each candidate, float64 [K] for each line."""
        judge = self._judge if direction is TO_SECOND else None  # it was fitted to 下联
        if not self._config.reverse and judge is None:
            return [np.zeros(len(own)) for own in texts]
        read = self._reverse[direction].read(lines, texts, judge is not None)
        sums = [self._config.reverse * one.scores for one in read]
        if judge is not None:
            sums = [own + self._config.judge * judge(one.states) for own, one in zip(sums, read, strict=True)]
        return sums

    def _sums(self, line: str, candidates: list[Candidate], reverse: np.ndarray) -> np.ndarray:
        """Compute the sum of each of K candidates, float64 [K]."""
        weights, texts = self._config, [text for text, _ in candidates]
        sums = weights.model * np.array([hypothesis.score for _, hypothesis in candidates])
        sums = sums + reverse
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
