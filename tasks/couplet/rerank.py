"""Orders the candidates by a weighted sum of scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.decoding.scoring import text_log_probs
from tasks.couplet.config import RerankConfig
from tasks.couplet.data.encoding import encode_sources
from tasks.couplet.rules.form import form_report
from tasks.couplet.rules.search import Candidate

if TYPE_CHECKING:
    from tasks.couplet.prediction import CoupletPredictor


class Reranker:
    """Orders n-best lists by the weights of one config.

    Args:
        config: the weights; the reverse model is loaded when first needed.
    """

    def __init__(self, config: RerankConfig) -> None:
        self.config = config

    @property
    def is_active(self) -> bool:
        """Whether the order may differ from the search's."""
        return self.config.is_active

    def order(self, lines: Sequence[str], found: Sequence[list[Candidate]]) -> list[list[Candidate]]:
        """Return the candidates of each line, best first; equal sums stay in the order of the search.

        Args:
            lines: 上联, normalised.
            found: candidates of each line in the order of the search.
        """
        if not self.is_active:
            return list(found)
        reverse = self._reverse_scores(lines, found)
        return [
            _sorted(candidates, self._sums(line, candidates, scores))
            for line, candidates, scores in zip(lines, found, reverse, strict=True)
        ]

    def _sums(self, line: str, candidates: list[Candidate], reverse: np.ndarray) -> np.ndarray:
        """Compute the sum of each of K candidates, float64 [K]."""
        weights, texts = self.config, [text for text, _ in candidates]
        sums = weights.model * np.array([hypothesis.score for _, hypothesis in candidates])
        sums = sums + weights.reverse * reverse
        if weights.tone_opposed:
            sums += weights.tone_opposed * np.array([form_report(line, text).tone_opposed for text in texts])
        if weights.consensus:
            sums += weights.consensus * consensus(texts)
        return sums

    def _reverse_scores(self, lines: Sequence[str], found: Sequence[list[Candidate]]) -> list[np.ndarray]:
        """Return log p(上联 | 下联) per token of every candidate, a float64 array [K] for each line."""
        if not self.config.reverse:
            return [np.zeros(len(candidates)) for candidates in found]
        vocabulary = self._reverse_model.vocabulary
        pairs = [
            (text, line) for line, candidates in zip(lines, found, strict=True) for text, _ in candidates
        ]
        source, lengths = encode_sources([np.asarray(vocabulary.encode(text)) for text, _ in pairs])
        targets = [vocabulary.encode(line) for _, line in pairs]
        totals = text_log_probs(self._reverse_model.step_model, source, lengths, targets)
        scores = np.array(totals) / [len(target) + 1 for target in targets]
        return np.split(scores, np.cumsum([len(candidates) for candidates in found])[:-1])

    @cached_property
    def _reverse_model(self) -> CoupletPredictor:
        from paddle_dialog.bundle.loading import load_predictor
        from paddle_dialog.task_folders import find_task

        predictor: Any = load_predictor(Path(str(self.config.reverse_weights)), find_task("couplet"))
        return predictor


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
