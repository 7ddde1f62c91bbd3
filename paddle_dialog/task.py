"""What a task is to the library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paddle_dialog.data.streaming import StreamedData
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import io, nn

    from paddle_dialog.benchmark.operations import Product
    from paddle_dialog.bundle.folder import Bundle
    from paddle_dialog.bundle.trained import TrainedNetwork
    from paddle_dialog.config.schema import ExperimentConfig
    from paddle_dialog.figures.folder import FigureFolder
    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.serving.endpoint import Endpoint


@dataclass
class EncodedData:
    """Examples as ids.

    Args:
        dataset: one encoded example an index.
        lengths: sort keys [N] or [N, 2] that keep padding small.
    """

    dataset: io.Dataset
    lengths: np.ndarray


@dataclass
class TrainingData:
    """All that a run needs to know of its data.

    Args:
        train: the training examples, or where they are streamed from.
        dev: the examples of the dev perplexity, or None.
        vocabularies: saved with the model.
        collate: makes a batch of arrays: the network's inputs, then the criterion's labels, the last of which
            is the mask [B, T] of real target tokens.
        notes: what was read, skipped and cut, a sentence each.
        files: what answering needs to know of the data, as files of the bundle by name; see ``Task.bundle_files``.
    """

    train: EncodedData | StreamedData
    dev: EncodedData | None
    vocabularies: Mapping[str, Vocabulary]
    collate: Callable[[list[Any]], list[np.ndarray]]
    notes: list[str] = field(default_factory=list)
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass
class Display:
    """What a task shows of a model at work.

    Args:
        texts: readable examples, e.g. source, hypothesis and reference in one line.
        heat_maps: weights [T, S] of the first example by their names, e.g. ``attention``.
        rows: the T target tokens.
        columns: the S source tokens.
        scalars: what else is measured on the dev set, by name, e.g. ``emotion_accuracy``.
    """

    texts: Sequence[str]
    heat_maps: Mapping[str, np.ndarray] = field(default_factory=dict)
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    scalars: Mapping[str, float] = field(default_factory=dict)


class Predictor(ABC):
    """A trained model that answers inputs of its task."""

    config: ExperimentConfig
    has_reference: ClassVar[bool] = False  # whether it heeds `decoding.engine: reference`

    @abstractmethod
    def predict_records(self, texts: Sequence[str], n_best: int | None = None) -> Iterable[dict[str, Any]]:
        """Answers texts as the JSON records that the command line prints, in order."""

    @abstractmethod
    def example_inputs(self, source: str, count: int) -> list[str]:
        """The first inputs of a data source, for the benchmark."""

    @abstractmethod
    def format_record(self, record: dict[str, Any]) -> str:
        """One record as lines for a reader."""

    @abstractmethod
    def evaluate(self, source: str, predictions: Path | None) -> dict[str, Any]:
        """All metrics of the task on one source; hypotheses are written to ``predictions`` as JSON lines."""

    @abstractmethod
    def draw_figures(self, source: str, folder: FigureFolder) -> None:
        """Draws what the model makes of a source: where it looks, what it takes for what."""


class Task(ABC):
    """One text generation task: its settings, its data, its network and its predictor."""

    name: ClassVar[str]
    config_class: ClassVar[type[ExperimentConfig]]
    can_stream: ClassVar[bool] = False  # whether `prepare_data` heeds `data.streaming`
    starts_from: ClassVar[str | None] = None  # task of the weights that a run may start from; None is its own
    path_keys: ClassVar[
        tuple[str, ...]
    ] = ()  # settings of the task's own that may name a file, e.g. ``data.more``
    file_names: ClassVar[tuple[str, ...]] = ()  # of the task's own files in a bundle, see `bundle_files`

    @abstractmethod
    def prepare_data(self, config: Any, vocabularies: Mapping[str, Vocabulary] | None) -> TrainingData:
        """Reads and encodes the data; ``vocabularies`` are those of a resumed run, else they are built."""

    @abstractmethod
    def vocabulary_sizes(self, size: int) -> Mapping[str, int]:
        """The sizes a network is built with when every vocabulary has ``size`` tokens."""

    @abstractmethod
    def build_network(self, config: Any, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        """The untrained network."""

    @abstractmethod
    def build_criterion(self, config: Any) -> nn.Layer:
        """The training loss, called with the network's outputs and the labels; has ``token_nll`` [B, T]."""

    @abstractmethod
    def display(self, config: Any, network: nn.Layer, data: TrainingData, count: int) -> Display:
        """Decodes the first ``count`` dev (else training) examples for the log and VisualDL."""

    @abstractmethod
    def predictor(self, config: Any, network: nn.Layer, vocabularies: Mapping[str, Vocabulary]) -> Predictor:
        """A predictor around a trained network."""

    def trained_predictor(
        self, config: Any, trained: TrainedNetwork, vocabularies: Mapping[str, Vocabulary]
    ) -> Predictor:
        """A predictor of a bundle; a task that can answer without the network builds none here.

        The task's own files are in ``trained.files``. An older bundle may lack some; what cannot be done without
        them says so when it is asked for.
        """
        return self.predictor(config, trained.network, vocabularies)

    def bundle_files(
        self, config: Any, vocabularies: Mapping[str, Vocabulary], known: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        """The task's own files in a bundle, beside weights, config, vocabularies and card; asked at each save.

        They are written as they are, checked by their checksums, and come back in ``trained.files``.

        Args:
            known: files that exist already: those that `prepare_data` made, or all of a bundle that is exported.

        Returns:
            Those of ``file_names``. A task overrides this to make files that need no training data.
        """
        return {name: known[name] for name in self.file_names if name in known}

    def files_of_data(
        self,
        config: Any,
        trained: TrainedNetwork,
        vocabularies: Mapping[str, Vocabulary],
        sources: Sequence[str],
    ) -> dict[str, bytes]:
        """Files of ``file_names`` that a bundle's final weights make of data, when it is exported.

        Args:
            config: of the bundle.
            trained: its weights.
            vocabularies: of the bundle.
            sources: the data, in the task's forms.

        Raises:
            UserError: the task makes none, or not with this model or of this data.
        """
        raise UserError(f"--data: the task '{self.name}' makes no files of data; leave it out")

    def files_of_companion(
        self, config: Any, vocabularies: Mapping[str, Vocabulary], companion: Bundle, where: Path
    ) -> dict[str, bytes]:
        """Files of ``file_names`` that another trained model becomes in a bundle, when it is exported.

        Args:
            config: of the bundle.
            vocabularies: of the bundle.
            companion: the other model.
            where: its folder, for messages.

        Raises:
            UserError: the task takes none in, or not this one.
        """
        raise UserError(
            f"{where}: the task '{self.name}' takes no further model into its bundle; leave it out"
        )

    def endpoint(self, limits: LimitsConfig) -> Endpoint[Any] | None:
        """What a server offers of this task over HTTP within its limits; nothing by default."""
        return None

    def initialise(self, config: Any, network: nn.Layer, data: TrainingData) -> None:  # noqa: B027
        """Sets weights that come from elsewhere, e.g. pretrained vectors; nothing by default."""

    def starting_weights(
        self, own: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """What a network takes of the weights that ``training.start_from`` names: all, which must be its own.

        Args:
            own: the network's first weights by name.
            given: those of the bundle.

        Returns:
            Weights by name; the log tells which of them are not of the bundle.

        Raises:
            UserError: the bundle lacks some that cannot be learned anew.
        """
        return given

    def fitted_weights(self, config: Any, data: TrainingData) -> Mapping[str, np.ndarray]:
        """Weights, by name, that are computed from the training data when a run begins, and then stay.

        They replace those of the same name that ``training.start_from`` brings; none by default.
        """
        return {}

    def products(
        self, config: Any, vocabulary_sizes: Mapping[str, int], batch: Sequence[np.ndarray]
    ) -> list[Product]:
        """The matrix products of a forward pass over the real tokens of a batch, for the benchmark.

        Empty, as by default, where nobody has counted them.
        """
        return []
