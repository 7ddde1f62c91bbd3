"""What the library needs of a task.

A new task is a folder whose module `task` has, as `TASK`, an instance of a subclass of `Task`, or of
`GenerationTask` where its models write text; and a recipe in `configs/`. The task says

- `name` and `config_class`: its settings, a subclass of `ExperimentConfig` or `GenerationConfig` whose
  `model` section has a `name` and a `width`;
- `prepare_data`: its examples, and how a list of them becomes a batch, a `NamedTuple` of arrays;
- `build_network` and `build_criterion`: each array of a batch goes to the arguments of its name of the network's
  `forward`, and, with the network's outputs, of that of the criterion, which returns the loss;
- `objective`: what its models are judged by (`paddle_dialog.metrics`);
- `predictor`: what answers, if its models answer anything.

All else has a default, such as what a loss is the mean over (`unit`, `count_units`), the order of the batches
(`training_batches`), examples in the log (`display`), files in the bundle, arguments on the
command line (`add_arguments`), addresses over HTTP and a tab of the page (`endpoints`).
A network that carries a state from batch to batch keeps it in buffers, which checkpoints hold; a layer that sets
`training_only` keeps them out of bundles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paddle_dialog.data.batching import EncodedData, EpochBatches, LengthBucketSampler, TrainingData
from paddle_dialog.data.files import Record
from paddle_dialog.errors import UserError
from paddle_dialog.metrics import Objective, Perplexity
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import argparse

    import numpy as np
    from paddle import nn

    from paddle_dialog.bundle.folder import Bundle, TrainedModel
    from paddle_dialog.config.schema import ExperimentConfig, GenerationConfig
    from paddle_dialog.figures import FigureFolder
    from paddle_dialog.predictor import GenerationPredictor, Predictor
    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.serving.endpoint import Endpoint


@dataclass
class Display:
    """What a task shows of a model at work."""

    texts: Sequence[str] = ()  # readable examples, e.g. source, hypothesis and reference in one line
    # What else is measured on the dev set, by name, e.g. `accuracy`.
    scalars: Mapping[str, float] = field(default_factory=dict)


class Task(ABC):
    """One task: its settings, its data, its network and its objective."""

    name: ClassVar[str]
    config_class: ClassVar[type[ExperimentConfig]]
    objective: ClassVar[Objective]
    unit: ClassVar[str] = "examples"  # what `count_units` counts
    vocabulary_names: ClassVar[tuple[str, ...]] = ()
    # Settings of the task's own that may name a file, e.g. `data.more`.
    path_keys: ClassVar[tuple[str, ...]] = ()
    file_names: ClassVar[tuple[str, ...]] = ()  # of the task's own files in a bundle, see `bundle_files`

    @abstractmethod
    def prepare_data(self, config: Any, vocabularies: Mapping[str, Vocabulary] | None) -> TrainingData:
        """Read and encode the data; `vocabularies` are those of a resumed run, else they are built."""

    def prepare_data_like(self, config: Any, earlier: Bundle) -> TrainingData:
        """Read and encode the data for weights that exist, by default with their vocabularies alone."""
        return self.prepare_data(config, earlier.vocabularies)

    @abstractmethod
    def build_network(self, config: Any, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        """Return the untrained network."""

    @abstractmethod
    def build_criterion(self, config: Any) -> nn.Layer:
        """Return the training loss, a scalar, called with the network's outputs and arrays of the batch."""

    def count_units(self, batch: Any) -> int:
        """Return the number of values that the loss of a collated batch averages: its examples.

        It weights the batches of one step, and the speed of training is measured in it.
        """
        return len(batch[0])

    def training_batches(
        self, config: Any, examples: EncodedData, processes: int = 1, rank: int = 0
    ) -> EpochBatches:
        """Return the order of the training examples: shuffled, and of similar length in a batch."""
        return LengthBucketSampler(
            examples.lengths,
            config.data.batch_size,
            seed=config.seed,
            bucket_batches=config.data.bucket_batches,
            num_replicas=processes,
            rank=rank,
        )

    def display(self, config: Any, network: nn.Layer, data: TrainingData, count: int) -> Display:
        """Return what the log shows of the first `count` dev, else training, examples; nothing by default."""
        return Display()

    def predictor(self, config: Any, model: TrainedModel) -> Predictor:
        """Return the predictor of a trained model; a task that can answer without the network builds none here.

        The task's own files are in `model.files`. An older bundle may lack some; whatever needs a missing one raises
        an error when it is used.

        Raises:
            UserError: the task's models answer nothing, as by default.
        """
        raise UserError(f"a model of the task '{self.name}' answers nothing by itself")

    def evaluate(self, predictor: Any, source: str, predictions: Path | None) -> Record:
        """Measure all metrics of a predictor on one source.

        Args:
            predictions: where the answers are written as JSON lines, or None.

        Raises:
            UserError: the source cannot be used, or the task has no metrics, as by default.
        """
        raise UserError(
            f"the task '{self.name}' has no metrics but its objective, which the log of a run has"
        )

    def measure_likelihood(self, predictor: Any, source: str) -> Record:
        """Return those metrics of `evaluate` that need no answer written, such as perplexity.

        Raises:
            UserError: the source cannot be used, or the task has no such metrics, as by default.
        """
        raise UserError(
            f"--no-answers: the task '{self.name}' has no metrics without its answers; leave it out"
        )

    def draw_figures(self, predictor: Any, source: str, folder: FigureFolder) -> None:
        """Draw figures of a predictor on a source, such as attention and confusions.

        Raises:
            UserError: the source cannot be used, or the task draws none, as by default.
        """
        raise UserError(f"--figures: the task '{self.name}' draws none; leave it out")

    def example_inputs(self, config: Any, source: str, count: int) -> list[str]:
        """Return the first inputs of a source, for the benchmark.

        Raises:
            UserError: the source cannot be used, or the task reads no inputs, as by default.
        """
        raise UserError(f"the task '{self.name}' has no inputs to answer in {source}")

    def bundle_files(
        self, config: Any, vocabularies: Mapping[str, Vocabulary], known: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        """Return the task's own files in a bundle, next to weights, config, vocabularies, card; asked at each save.

        They are written as they are, checked by their checksums, and come back in `TrainedModel.files`.

        Args:
            known: files that exist already: those that `prepare_data` made, or all of a bundle that is exported.

        Returns:
            Those of `file_names`. Override this to make files that need no training data.
        """
        return {name: known[name] for name in self.file_names if name in known}

    def files_of_data(self, config: Any, model: TrainedModel, sources: Sequence[str]) -> dict[str, bytes]:
        """Return files of `file_names` that a bundle's final weights make of data, when it is exported.

        Raises:
            UserError: the task makes none, or not with this model or of this data.
        """
        raise UserError(f"--data: the task '{self.name}' makes no files of data; leave it out")

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:  # noqa: B027
        """Add arguments of the task's own to the command line that asks a model; none by default.

        Their values are handed to the predictor's `predict_records` by their names.
        """

    def endpoints(self, limits: LimitsConfig) -> Sequence[Endpoint[Any]]:
        """Return what a server offers of this task over HTTP within its limits, the main address first.

        Nothing by default. The first brings the tab of the page and the details of the model card.
        """
        return ()

    def fitted_weights(self, config: Any, data: TrainingData) -> Mapping[str, np.ndarray]:
        """Return weights, by name, that are computed from the training data when a run begins, and then stay.

        They replace those of the same name that `training.start_from` brings; none by default.
        """
        return {}


class GenerationTask(Task):
    """A task whose models write text token by token, and are judged by their perplexity unless it says otherwise.

    A batch has the `mask` [B, T] of real target tokens, and the criterion keeps `token_nll` [B, T].
    """

    config_class: ClassVar[type[GenerationConfig]]
    objective: ClassVar[Objective] = Perplexity()
    unit = "tokens"
    vocabulary_names: ClassVar[tuple[str, ...]] = ("text",)

    def count_units(self, batch: Any) -> int:
        """Return the number of real target tokens."""
        return int(batch.mask.sum())

    def build_criterion(self, config: Any) -> nn.Layer:
        """Return masked cross-entropy per token of logits [B, T, V], labels [B, T] and the mask."""
        from paddle_dialog.training.losses import SequenceCrossEntropy

        sampled = getattr(config.model, "sampled_words", 0) > 0
        return SequenceCrossEntropy(config.training.label_smoothing, sampled)

    @abstractmethod
    def predictor(self, config: Any, model: TrainedModel) -> GenerationPredictor:
        """Return the predictor of a trained model."""
