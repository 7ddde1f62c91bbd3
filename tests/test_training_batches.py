"""The training loader: datasets that vary from epoch to epoch, and the steps that they make."""

from typing import Any, NamedTuple

import numpy as np
from paddle import io

from paddle_dialog.config.schema import DataConfig, ExperimentConfig, TrainingConfig
from paddle_dialog.data.training_data import EncodedData, TrainingData
from paddle_dialog.objective import Perplexity
from paddle_dialog.task import Task
from paddle_dialog.training.batches import TrainingBatches
from paddle_dialog.training.progress import Progress


class Examples(NamedTuple):
    """A batch: the epoch, once for each example."""

    epochs: np.ndarray


class EpochDataset(io.Dataset):
    """Six examples that hold the epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = -1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> int:
        return self.epoch


class Counting(Task):
    """A task whose first batch of an epoch has one unit, and each that follows one more."""

    objective = Perplexity()

    def __init__(self) -> None:
        self.units = 0

    def count_units(self, batch: Any) -> int:
        self.units += 1
        return self.units

    def prepare_data(self, config: Any, vocabularies: Any) -> TrainingData:
        raise NotImplementedError

    def build_network(self, config: Any, vocabulary_sizes: Any) -> Any:
        raise NotImplementedError

    def build_criterion(self, config: Any) -> Any:
        raise NotImplementedError


def batches(progress: Progress, batch_size: int, accumulate: int = 1) -> TrainingBatches:
    config = ExperimentConfig(
        "counting", data=DataConfig(batch_size=batch_size), training=TrainingConfig(accumulate=accumulate)
    )
    examples = EncodedData(EpochDataset(), np.ones(6, "int64"))
    data = TrainingData(examples, None, {}, lambda examples: Examples(np.array(examples)))
    return TrainingBatches(Counting(), config, data, progress)


def test_a_dataset_is_told_the_epoch_that_begins_or_goes_on() -> None:
    progress = Progress()
    loader = batches(progress, 2)
    seen = []
    for progress.epoch, progress.batch in ((0, 0), (3, 1)):  # the second is resumed inside an epoch
        seen.append([step.batches[0].epochs.tolist() for step in loader])
    assert seen == [[[0, 0]] * 3, [[3, 3]] * 2]


def test_each_batch_has_its_share_of_its_step() -> None:
    """Six batches of one example by fours: 1 + 2 + 3 + 4 units, then 5 + 6."""
    loader = batches(Progress(), 1, accumulate=4)
    assert [step.shares for step in loader] == [[0.1, 0.2, 0.3, 0.4], [5 / 11, 6 / 11]]
    assert loader.units == 21
