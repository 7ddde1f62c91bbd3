"""A trained model that answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle_dialog.config.schema import ExperimentConfig, GenerationConfig
    from paddle_dialog.figures.folder import FigureFolder


class Predictor(ABC):
    """A trained model that answers inputs of its task."""

    config: ExperimentConfig

    @property
    def batch_size(self) -> int:
        """Number of inputs answered at a time."""
        return self.config.data.batch_size

    @abstractmethod
    def predict_records(self, texts: Sequence[str]) -> Iterable[dict[str, Any]]:
        """Answer texts as the JSON records that the command line prints, in order."""

    @abstractmethod
    def format_record(self, record: dict[str, Any]) -> str:
        """Format one record as lines for a reader."""

    @abstractmethod
    def example_inputs(self, source: str, count: int) -> list[str]:
        """Return the first inputs of a data source, for the benchmark."""

    @abstractmethod
    def evaluate(self, source: str, predictions: Path | None) -> dict[str, Any]:
        """Measure all metrics of the task on one source; write the answers to `predictions` as JSON lines."""

    def decoding_summary(self) -> str:
        """Describe the search in a few words; empty where there is none."""
        return ""

    def draw_figures(self, source: str, folder: FigureFolder) -> None:
        """Draw figures of the model on a source, such as attention and confusions.

        Raises:
            UserError: the task draws none, as by default.
        """
        raise UserError(f"--figures: the task '{self.config.task}' draws none; leave it out")


class GenerationPredictor(Predictor):
    """A predictor that writes text, by the search that the section `decoding` describes."""

    config: GenerationConfig
    has_reference: ClassVar[bool] = False  # whether it supports `decoding.engine: reference`

    @property
    def batch_size(self) -> int:
        """`decoding.batch_size`."""
        return self.config.decoding.batch_size

    @abstractmethod
    def predict_records(self, texts: Sequence[str], n_best: int | None = None) -> Iterable[dict[str, Any]]:
        """Answer texts with `n_best` candidates each, by default `decoding.n_best`."""

    @abstractmethod
    def decoding_summary(self) -> str:
        """Describe the search in a few words."""
