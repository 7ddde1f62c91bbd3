"""Measures training throughput and the time of each phase of a step."""

from __future__ import annotations

import inspect
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_dialog.benchmark.limit import measure_rates
from paddle_dialog.benchmark.operations import PASSES, Product
from paddle_dialog.benchmark.yardstick import PlainCriterion, Yardstick
from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.errors import UserError
from paddle_dialog.task import EncodedData, Task, TrainingData
from paddle_dialog.training.optimizer import build_optimizer

WARM_UP_STEPS = 2  # the first steps allocate memory

Batch = list[np.ndarray]


@dataclass(frozen=True)
class TrainingSpeed:
    """Speed and memory of a number of training steps.

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
        """Return the figures by name, ready for JSON."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


class TimedTraining:
    """Trains step by step on the batches of a recipe and adds up the time of each phase.

    Args:
        network: what is trained.
        criterion: its loss.
        config: the recipe, for optimiser and batches.
        clock: seconds so far, of the wall clock or, on a busy machine, of the processor.
    """

    def __init__(
        self,
        network: nn.Layer,
        criterion: nn.Layer,
        config: Any,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.network = network
        self.criterion = criterion
        self.optimizer, _ = build_optimizer(config.training, network, 10_000, config.model.width)
        self._clock = clock
        self._inputs = len(inspect.signature(network.forward).parameters)  # as paddle.Model counts them
        self._phases = np.zeros(4)  # seconds: data, forward, backward, optimizer
        self._tokens = 0
        self._steps = 0
        network.train()

    def step(self, batch: Batch, reading: float) -> float:
        """Take one training step.

        Args:
            batch: the arrays of a batch, the network's inputs first.
            reading: seconds it took to make the batch.

        Returns:
            The loss.
        """
        began = self._clock()
        tensors = [paddle.to_tensor(array) for array in batch]
        ready = self._clock()
        outputs = self.network(*tensors[: self._inputs])
        loss = self.criterion(
            *(outputs if isinstance(outputs, tuple) else (outputs,)), *tensors[self._inputs :]
        )
        value = _wait_for(loss)
        forward = self._clock()
        loss.backward()
        _wait_for(next(p for p in self.network.parameters() if p.grad is not None).grad)
        backward = self._clock()
        self.optimizer.step()
        self.optimizer.clear_grad()
        _wait_for(self.network.parameters()[0])
        done = self._clock()
        self._steps += 1
        if self._steps > WARM_UP_STEPS:
            self._phases += [reading + ready - began, forward - ready, backward - forward, done - backward]
            self._tokens += int(batch[-1].sum())
        return value

    @property
    def seconds(self) -> float:
        """Seconds of the steps after the warm-up."""
        return float(self._phases.sum())

    def speed(self) -> TrainingSpeed:
        """Return the averages over the steps after the warm-up."""
        total = self.seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        data, forward, backward, optimizer = (self._phases / total).tolist()
        rate = self._tokens / total
        return TrainingSpeed(self._steps - WARM_UP_STEPS, rate, data, forward, backward, optimizer, peak)


def timed_batches(
    data: TrainingData, config: Any, steps: int, clock: Callable[[], float], bucketed: bool = True
) -> Iterator[tuple[Batch, float]]:
    """Iterate over the first batches of a recipe's first epoch, warm-up included, with the seconds each took to make.

    Args:
        data: the encoded examples.
        config: the recipe.
        steps: timed steps.
        clock: seconds so far.
        bucketed: False for random batches, padded to the longest line each happens to have.
    """
    train, settings = data.train, config.data
    if not isinstance(train, EncodedData):
        raise UserError("data.streaming: the benchmark takes examples from memory; set it to false")
    pool = settings.bucket_batches if bucketed else 1
    sampler = LengthBucketSampler(train.lengths, settings.batch_size, seed=config.seed, bucket_batches=pool)
    batches = iter(sampler)
    for _ in range(steps + WARM_UP_STEPS):
        began = clock()
        indices = next(batches, None)
        if indices is None:  # a small corpus starts over
            batches = iter(sampler)
            indices = next(batches)
        batch = data.collate([train.dataset[index] for index in indices])
        yield batch, clock() - began


def build_yardstick(name: str, task: Task, config: Any, vocabulary_sizes: Mapping[str, int]) -> Yardstick:
    """Build a yardstick for a recipe: one of the task's own, or a Transformer of Paddle's layers.

    Raises:
        UserError: there is none of this name, or not for this recipe.
    """
    from paddle_dialog.benchmark.plain_transformer import PlainTransformer
    from paddle_dialog.config.models import TransformerConfig

    own = task.yardsticks(config, vocabulary_sizes)
    if name in own:
        return own[name]()
    if name != "transformer":
        names = ", ".join(["transformer", "reference", *own])
        raise UserError(f"--against {name}: is unknown to the task '{task.name}'; there are {names}")
    if not isinstance(getattr(config, "model", None), TransformerConfig):
        raise UserError("--against transformer needs a recipe whose model.name is transformer")
    return Yardstick(PlainTransformer(config.model, next(iter(vocabulary_sizes.values()))), PlainCriterion())


def measure_training(
    task: Task, config: Any, steps: int, against: str | None = None, cpu_time: bool = False
) -> dict[str, Any]:
    """Train some steps and report the speed.

    Args:
        task: the task.
        config: the recipe.
        steps: timed steps.
        against: a yardstick to train in turns on the same batches, see `build_yardstick`.
        cpu_time: count processor seconds instead of wall-clock seconds.

    Returns:
        `training` and, where the task counts its products, `limit` (see `share_of_limit`); with a yardstick
        also its speed and the ratios, `times_…`.
    """
    clock = time.process_time if cpu_time else time.perf_counter
    data = task.prepare_data(config, None)
    sizes = {name: len(vocabulary) for name, vocabulary in data.vocabularies.items()}
    paddle.seed(config.seed)
    unbucketed = f"{against}_random_batches"
    trainings = {
        "training": TimedTraining(
            task.build_network(config, sizes), task.build_criterion(config), config, clock
        )
    }
    if against is not None:
        rival = build_yardstick(against, task, config, sizes)
        trainings[against] = TimedTraining(rival.network, rival.criterion, config, clock)
        if rival.random_batches:
            trainings[unbucketed] = TimedTraining(rival.network, rival.criterion, config, clock)
    random_batches = timed_batches(data, config, steps, clock, bucketed=False)
    products: list[list[Product]] = []
    for batch, reading in timed_batches(data, config, steps, clock):
        products.append(task.products(config, sizes, batch))
        for name, training in trainings.items():
            training.step(*(next(random_batches) if name == unbucketed else (batch, reading)))
    speeds = {name: training.speed() for name, training in trainings.items()}
    result: dict[str, Any] = {name: speed.as_dict() for name, speed in speeds.items()}
    if any(products):
        seconds = trainings["training"].seconds
        result["limit"] = share_of_limit(products[WARM_UP_STEPS:], seconds, clock)
    own = speeds.pop("training").tokens_per_second
    return result | {
        f"times_{name}": round(own / speed.tokens_per_second, 3) for name, speed in speeds.items()
    }


def share_of_limit(
    steps: Sequence[Sequence[Product]], seconds: float, clock: Callable[[], float]
) -> dict[str, float]:
    """Measure how near training steps come to the time that their products take by themselves.

    Args:
        steps: the products of each step's forward pass.
        seconds: what the steps took.
        clock: seconds so far.

    Returns:
        In 10^9 operations a second: the useful ones of the steps, and those that NumPy, Paddle and the faster of
        both reach on products of the same shapes; and the steps' share of the last.
    """
    work = [sum(product.operations for product in products) for products in steps]
    useful = PASSES * sum(work) / seconds / 1e9
    median = int(np.argsort(work)[len(work) // 2])  # this step represents all
    rates = measure_rates(steps[median], clock)
    return {
        "useful_gflops": round(useful, 1),
        "numpy_gflops": round(rates.numpy, 1),
        "paddle_gflops": round(rates.paddle, 1),
        "limit_gflops": round(rates.best, 1),
        "share": round(useful / rates.best, 3),
    }


def _wait_for(tensor: Tensor) -> float:
    """Read one number; on a GPU this waits for all earlier computation."""
    return float(tensor.flatten()[0])
