"""Training throughput, and where a step's time goes."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.errors import UserError
from paddle_dialog.task import EncodedData, Task, TrainingData
from paddle_dialog.training.optimizer import build_optimizer

WARM_UP_STEPS = 2  # the first steps allocate memory


@dataclass(frozen=True)
class TrainingSpeed:
    """What a number of training steps took.

    Args:
        steps: timed steps.
        tokens_per_second: real target tokens, padding not counted.
        data, forward, backward, optimizer: shares of the time, 0 to 1, together 1.
        peak_memory_mb: largest resident memory of the process so far, in MiB.
    """

    steps: int
    tokens_per_second: float
    data: float
    forward: float
    backward: float
    optimizer: float
    peak_memory_mb: float

    def as_dict(self) -> dict[str, float]:
        """The figures by name, ready for JSON."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


class TimedTraining:
    """Trains step by step on the batches of a recipe and adds up the time of each phase.

    Args:
        network: what is trained.
        criterion: its loss.
        config: the recipe, for optimiser and batches.
        data: the encoded examples.
    """

    def __init__(self, network: nn.Layer, criterion: nn.Layer, config: Any, data: TrainingData) -> None:
        self.network = network
        self.criterion = criterion
        self.optimizer, _ = build_optimizer(config.training, network, 10_000, config.model.width)
        self._phases = np.zeros(4)  # seconds: data, forward, backward, optimizer
        self._tokens = 0
        self._steps = 0
        network.train()

    def step(self, batch: list[np.ndarray], reading: float, inputs: int) -> float:
        """One training step.

        Args:
            batch: the arrays of a batch, the network's inputs first.
            reading: seconds it took to make the batch.
            inputs: how many of the arrays are inputs.

        Returns:
            The loss.
        """
        began = time.perf_counter()
        tensors = [paddle.to_tensor(array) for array in batch]
        ready = time.perf_counter()
        outputs = self.network(*tensors[:inputs])
        loss = self.criterion(*(outputs if isinstance(outputs, tuple) else (outputs,)), *tensors[inputs:])
        value = _wait_for(loss)
        forward = time.perf_counter()
        loss.backward()
        _wait_for(next(p for p in self.network.parameters() if p.grad is not None).grad)
        backward = time.perf_counter()
        self.optimizer.step()
        self.optimizer.clear_grad()
        _wait_for(self.network.parameters()[0])
        done = time.perf_counter()
        self._steps += 1
        if self._steps > WARM_UP_STEPS:
            self._phases += [reading + ready - began, forward - ready, backward - forward, done - backward]
            self._tokens += int(batch[-1].sum())
        return value

    def speed(self) -> TrainingSpeed:
        """The averages over the steps after the warm-up."""
        total = self._phases.sum()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        data, forward, backward, optimizer = (self._phases / total).tolist()
        rate = self._tokens / total
        return TrainingSpeed(self._steps - WARM_UP_STEPS, rate, data, forward, backward, optimizer, peak)


def timed_batches(data: TrainingData, config: Any, steps: int) -> Iterator[tuple[list[np.ndarray], float]]:
    """The first batches of a recipe's first epoch, the warm-up's included, with the seconds each took to make."""
    train, settings = data.train, config.data
    if not isinstance(train, EncodedData):
        raise UserError("data.streaming: the benchmark takes examples from memory; set it to false")
    sampler = LengthBucketSampler(
        train.lengths, settings.batch_size, seed=config.seed, bucket_batches=settings.bucket_batches
    )
    batches = iter(sampler)
    for _ in range(steps + WARM_UP_STEPS):
        began = time.perf_counter()
        indices = next(batches, None)
        if indices is None:  # a small corpus goes round again
            batches = iter(sampler)
            indices = next(batches)
        batch = data.collate([train.dataset[index] for index in indices])
        yield batch, time.perf_counter() - began


def measure_training(task: Task, config: Any, steps: int, against_book: bool = False) -> dict[str, Any]:
    """Trains some steps and reports the speed.

    Args:
        task: the task.
        config: the recipe.
        steps: timed steps.
        against_book: also train the textbook's couplet model, in turns on the same batches, and report the
            ratio.

    Returns:
        ``training``, and with ``against_book`` also ``book`` and ``times_book``.
    """
    data = task.prepare_data(config, None)
    sizes = {name: len(vocabulary) for name, vocabulary in data.vocabularies.items()}
    paddle.seed(config.seed)
    own = TimedTraining(task.build_network(config, sizes), task.build_criterion(config), config, data)
    book = None
    if against_book:
        from paddle_dialog.benchmark.book import BookCriterion, BookModel

        book = TimedTraining(BookModel(next(iter(sizes.values()))), BookCriterion(), config, data)
    for batch, reading in timed_batches(data, config, steps):
        own.step(batch, reading, len(batch) - 2)
        if book is not None:
            book.step(batch, reading, len(batch) - 2)
    result: dict[str, Any] = {"training": own.speed().as_dict()}
    if book is not None:
        result["book"] = book.speed().as_dict()
        ratio = own.speed().tokens_per_second / book.speed().tokens_per_second
        result["times_book"] = round(ratio, 3)
    return result


def _wait_for(tensor: Tensor) -> float:
    """Reads one number, which on a GPU waits until all before it is computed."""
    return float(tensor.flatten()[0])
