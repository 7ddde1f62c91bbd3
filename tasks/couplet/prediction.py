"""A trained couplet model that answers 上联."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import nn

from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.processors import ForbiddenTokens
from paddle_dialog.decoding.reference import reference_beam_search
from paddle_dialog.decoding.search import decode
from paddle_dialog.errors import UserError
from paddle_dialog.task import Predictor
from paddle_dialog.text.characters import is_hanzi, normalise_line
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.config import CoupletConfig
from tasks.couplet.data import read_couplets
from tasks.couplet.dataset import encode_sources
from tasks.couplet.form import Form, form_report

# A 下联 is written in characters: padding, unknown and begin never stand in it.
NO_SPECIAL_TOKENS = ForbiddenTokens([[Vocabulary.pad_id, Vocabulary.unk_id, Vocabulary.bos_id]])


@dataclass(frozen=True)
class Prediction:
    """One candidate.

    Args:
        text: the 下联.
        score: log-probability per token, end token included.
        form: which rules of the couplet it keeps.
    """

    text: str
    score: float
    form: Form

    def as_dict(self) -> dict[str, Any]:
        """The candidate as the command line prints it."""
        return {"text": self.text, "score": round(self.score, 4), "form": self.form.as_dict()}


class CoupletPredictor(Predictor):
    """Answers 上联 with 下联.

    Args:
        config: decoding settings and the length the model was made for.
        network: the trained network.
        vocabulary: of both lines.
    """

    def __init__(self, config: CoupletConfig, network: nn.Layer, vocabulary: Vocabulary) -> None:
        self.config = config
        self.network = network
        self.vocabulary = vocabulary
        network.eval()

    def predict(self, firsts: Sequence[str], n_best: int | None = None) -> list[list[Prediction]]:
        """Writes 下联.

        Args:
            firsts: 上联; blanks are dropped and punctuation is unified before the model sees them.
            n_best: candidates for each, best first; the config's number by default.

        Returns:
            The candidates of each line.

        Raises:
            UserError: a line is empty, has no hanzi, or is longer than the model allows.
        """
        lines = [self._checked(first) for first in firsts]
        options = self._options(n_best)
        answers: list[list[Prediction]] = []
        for start in range(0, len(lines), self.config.decoding.batch_size):
            batch = lines[start : start + self.config.decoding.batch_size]
            found = self._search([np.asarray(self.vocabulary.encode(line)) for line in batch], options)
            for line, hypotheses in zip(batch, found, strict=True):
                texts = [("".join(self.vocabulary.decode(h.tokens)), h.score) for h in hypotheses]
                answers.append([Prediction(text, score, form_report(line, text)) for text, score in texts])
        return answers

    def greedy(self, sources: Sequence[np.ndarray]) -> list[str]:
        """The greedy 下联 of encoded 上联, for a look at a model in training."""
        options = SearchOptions(
            strategy="greedy", max_length=self.config.decoding.max_length, processors=[NO_SPECIAL_TOKENS]
        )
        found = self._search(sources, options)
        return ["".join(self.vocabulary.decode(hypotheses[0].tokens)) for hypotheses in found]

    def predict_records(self, texts: Sequence[str], n_best: int | None = None) -> Iterable[dict[str, Any]]:
        """Answers as JSON records: ``{"first": …, "predictions": [{"text", "score", "form"}, …]}``."""
        for first, predictions in zip(texts, self.predict(texts, n_best), strict=True):
            yield {"first": first, "predictions": [prediction.as_dict() for prediction in predictions]}

    def format_record(self, record: dict[str, Any]) -> str:
        """上联 and its 下联; several candidates stand below each other with their scores."""
        predictions = record["predictions"]
        if len(predictions) == 1:
            return f"{record['first']}\t{predictions[0]['text']}"
        lines = [record["first"], *(f"  {p['score']:8.4f}  {p['text']}" for p in predictions)]
        return "\n".join(lines)

    def example_inputs(self, source: str, count: int) -> list[str]:
        """The first 上联 of a source of couplets."""
        return [couplet.first for couplet in read_couplets(source)[:count]]

    def evaluate(self, source: str, predictions: Path | None) -> dict[str, Any]:
        """All couplet metrics on one source."""
        from tasks.couplet.evaluation import evaluate

        return evaluate(self, source, predictions)

    @property
    def longest_line(self) -> int:
        """Characters that a line may have."""
        return min(self.config.data.max_length, self.config.decoding.max_length)

    def decoding_summary(self) -> str:
        """How the candidates are searched for, in a few words."""
        settings = self.config.decoding
        return {
            "beam": f"beam {settings.beam_size}, length penalty {settings.length_penalty}, {settings.engine} engine",
            "greedy": "greedy",
            "sample": f"sampling, temperature {settings.temperature}, top-k {settings.top_k}, "
            f"top-p {settings.top_p}, seed {self.config.seed}",
        }[settings.strategy]

    def _checked(self, first: str) -> str:
        line, limit = normalise_line(first), self.longest_line
        if not line:
            raise UserError("the 上联 is empty; give a line of Chinese characters, e.g. 晚风摇树树还挺")
        if not any(is_hanzi(character) for character in line):
            raise UserError(f"'{first[:40]}' has no Chinese character; give a 上联 such as 晚风摇树树还挺")
        if len(line) > limit:
            raise UserError(
                f"the 上联 '{line[:20]}…' has {len(line)} characters, and this model reads up to {limit}; "
                "shorten it (data.max_length and decoding.max_length of the config set the limit)"
            )
        return line

    def _options(self, n_best: int | None) -> SearchOptions:
        settings = self.config.decoding
        count = settings.n_best if n_best is None else n_best
        return SearchOptions(
            strategy=settings.strategy,
            beam_size=max(settings.beam_size, count),
            n_best=count,
            length_penalty=settings.length_penalty,
            alpha=settings.alpha,
            max_length=settings.max_length,
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            seed=self.config.seed,
            processors=[NO_SPECIAL_TOKENS],
        )

    def _search(self, sources: Sequence[np.ndarray], options: SearchOptions) -> list[list[Hypothesis]]:
        ids, lengths = (paddle.to_tensor(array) for array in encode_sources(list(sources)))
        settings = self.config.decoding
        if settings.engine == "reference":
            return reference_beam_search(
                self.network, ids, lengths, options.beam_size, options.n_best, settings.max_length
            )
        return decode(self.network, ids, lengths, options)
