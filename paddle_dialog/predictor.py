"""A trained model that answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from paddle_dialog.data.files import Record
from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.bundle.folder import TrainedModel
    from paddle_dialog.config.schema import ExperimentConfig, GenerationConfig


@dataclass(frozen=True)
class Prediction:
    """A candidate of a predictor that writes text; a task may add fields of its own."""

    text: str
    score: float  # log-probability per token, end token included

    def as_dict(self) -> Record:
        """Return the candidate as the command line prints it."""
        return {"text": self.text, "score": round(self.score, 4)}


def check_request(texts: Sequence[Any], n_best: int | None = None, conversations: bool = False) -> None:
    """Check that `texts` is a list of texts, not one text, which would be answered by letters; and `n_best`."""
    from paddle_dialog.config.schema import MAX_ROWS  # needs YAML, whose absence only `run_tool` explains

    if isinstance(texts, str):
        raise UserError(f"give a list of texts, e.g. [{texts[:20]!r}]; this is one text")
    if not conversations:
        check_texts(texts)
    if n_best is not None and not 1 <= n_best <= MAX_ROWS:
        raise UserError(f"n_best is {n_best}; give 1 to {MAX_ROWS}")


def check_texts(texts: Sequence[Any]) -> Sequence[str]:
    """Return the texts themselves.

    Raises:
        UserError: one is no text, such as the NaN or None of a table's empty cell; its place is named.
    """
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise UserError(f"input {number} is {text!r}, and must be a text; leave empty ones out")
    return texts


class Predictor(ABC):
    """A trained model that answers inputs of its task. Evaluation and figures are the task's."""

    config: ExperimentConfig

    @property
    def batch_size(self) -> int:
        """Number of inputs answered at a time."""
        return self.config.data.batch_size

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: a network is not a value."""
        raise UserError(
            "a predictor cannot be pickled; call paddle_dialog.load in each process, or fork after loading"
        )

    @abstractmethod
    def predict_records(self, texts: Sequence[str]) -> Iterable[Record]:
        """Answer texts as the JSON records that the command line prints, in order."""

    def predict(self, texts: Sequence[str]) -> Sequence[Any]:
        """Answer texts in order, by default with the records."""
        return list(self.predict_records(texts))

    @abstractmethod
    def format_record(self, record: Record) -> str:
        """Format one record as lines for a reader."""

    def note_of(self, record: Record) -> str | None:
        """Return a note shown with a prediction; none by default."""
        return None

    def decoding_summary(self) -> str:
        """Describe in a few words how answers are found, for reports; empty where nothing is searched."""
        return ""


class GenerationPredictor(Predictor):
    """A predictor that writes text, by the search that the section `decoding` describes."""

    config: GenerationConfig
    _trained: TrainedModel

    @property
    def network(self) -> nn.Layer:
        """The trained network in evaluation mode."""
        return self._trained.network

    @property
    def batch_size(self) -> int:
        return self.config.decoding.batch_size

    @abstractmethod
    def predict(self, texts: Sequence[str], n_best: int | None = None) -> Sequence[Sequence[Prediction]]:
        """Return `n_best` candidates for each text, best first, by default `decoding.n_best`."""

    @abstractmethod
    def predict_records(self, texts: Sequence[str], n_best: int | None = None) -> Iterable[Record]:
        """Answer texts with `n_best` candidates each, by default `decoding.n_best`."""

    def search_summary(self) -> str:
        """Describe the section `decoding` in a few words, the part of `decoding_summary` that all tasks share."""
        settings = self.config.decoding
        if settings.strategy == "beam":
            alpha = "" if settings.length_penalty == "none" else f" {settings.alpha:g}"
            size = max(settings.beam_size, settings.n_best)
            return f"beam {size}, length penalty {settings.length_penalty}{alpha}"
        if settings.strategy == "greedy":
            return "greedy"
        cut = f"temperature {settings.temperature}, top-k {settings.top_k}, top-p {settings.top_p}"
        return f"sampling, {cut}, seed {self.config.seed}"
