"""Measures training throughput and the time of each phase of a step."""

from __future__ import annotations

import dataclasses
import itertools
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_dialog.benchmark.limit import measure_rates
from paddle_dialog.benchmark.operations import PASSES, Product
from paddle_dialog.benchmark.yardstick import PlainCriterion, Yardstick
from paddle_dialog.data.records import Record
from paddle_dialog.data.training_data import EncodedData, TrainingData, as_tensors
from paddle_dialog.errors import UserError
from paddle_dialog.task import Task
from paddle_dialog.training.batches import Step
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.run_folder import data_and_start
from paddle_dialog.training.training_model import TrainingModel

WARM_UP_STEPS = 2  # the first steps allocate memory

PHASES = ("data", "forward", "backward", "optimizer")

Batch = Any  # a `NamedTuple` of arrays


class TimedTraining(TrainingModel):
    """Takes the steps of a real run, and adds up the time of each phase.

    Args:
        task: the task, for its objective and unit.
        network: what is trained.
        criterion: its loss.
        config: the recipe.
        clock: seconds so far, of the wall clock or, on a busy machine, of the processor.
    """

    def __init__(
        self,
        task: Task,
        network: nn.Layer,
        criterion: nn.Layer,
        config: Any,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(task, config, network, 10_000, Progress(), criterion)
        self._task = task
        self._clock = clock
        self._began = 0.0
        self._steps: list[dict[str, float]] = []  # seconds by phase, and units

    def step(self, batch: Batch, reading: float) -> float:
        """Take one training step.

        Args:
            batch: a batch of arrays.
            reading: seconds it took to make the batch.

        Returns:
            The loss.
        """
        self._steps.append({"units": self._task.count_units(batch), "data": reading})
        self._began = self._clock()
        tensors = as_tensors(batch)
        self._ends("data")
        return float(self.train_batch([Step([tensors], [1.0])]))

    def compute_loss(self, batch: Any) -> Tensor:
        """Do the same as in a run, timed."""
        loss = super().compute_loss(batch)
        self._ends("forward", loss)
        return loss

    def backpropagate(self, loss: Tensor, share: float) -> None:
        """Do the same as in a run, timed."""
        super().backpropagate(loss, share)
        self._ends("backward", next(p.grad for p in self.network.parameters() if p.grad is not None))

    def update_weights(self) -> None:
        """Do the same as in a run, timed."""
        super().update_weights()
        self._ends("optimizer", self.network.parameters()[0])

    def _ends(self, phase: str, result: Tensor | None = None) -> None:
        """Add the time since the last phase to this one, once its result is computed."""
        if result is not None:
            float(result.flatten()[0])  # on a GPU this waits until all before it is computed
        now = self._clock()
        self._steps[-1][phase] = self._steps[-1].get(phase, 0.0) + now - self._began
        self._began = now

    def _total(self, name: str) -> float:
        return sum(step[name] for step in self._steps[WARM_UP_STEPS:])

    @property
    def seconds(self) -> float:
        """Seconds of the steps after the warm-up."""
        return sum(map(self._total, PHASES))

    @property
    def units_per_second(self) -> float:
        """Real units a second in the steps after the warm-up."""
        return self._total("units") / self.seconds

    def speed(self) -> dict[str, float]:
        """Return the averages over the steps after the warm-up, ready for JSON.

        Returns:
            `steps`, `<units>_per_second` (padding not counted), the shares of the phases in the time, 0 to 1,
            and `peak_memory_mb`, the largest resident memory of the process so far, in MiB.
        """
        shares = {phase: round(self._total(phase) / self.seconds, 4) for phase in PHASES}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {
            "steps": len(self._steps) - WARM_UP_STEPS,
            f"{self._task.unit}_per_second": round(self.units_per_second, 4),
            **shares,
            "peak_memory_mb": round(peak, 4),
        }


def timed_batches(
    task: Task, data: TrainingData, config: Any, steps: int, clock: Callable[[], float]
) -> Iterator[tuple[Batch, float]]:
    """Iterate over the first batches of a recipe's first epoch, warm-up included, with the seconds each took to make.

    Args:
        task: the task.
        data: the examples.
        config: the recipe.
        steps: timed steps.
        clock: seconds so far.
    """
    order = task.training_batches(config, data.train)
    batches = itertools.chain.from_iterable(itertools.repeat(order))  # a small corpus starts over
    for _ in range(steps + WARM_UP_STEPS):
        began = clock()
        examples = next(batches)
        if isinstance(data.train, EncodedData):
            examples = [data.train.dataset[index] for index in examples]
        batch = data.collate(examples)
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
) -> Record:
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
    data, _ = data_and_start(task, config)
    sizes = {name: len(vocabulary) for name, vocabulary in data.vocabularies.items()}
    paddle.seed(config.seed)
    unbucketed = f"{against}_random_batches"
    trainings = {
        "training": TimedTraining(
            task, task.build_network(config, sizes), task.build_criterion(config), config, clock
        )
    }
    if against is not None:
        rival = build_yardstick(against, task, config, sizes)
        trainings[against] = TimedTraining(task, rival.network, rival.criterion, config, clock)
        if rival.random_batches:
            trainings[unbucketed] = TimedTraining(task, rival.network, rival.criterion, config, clock)
    unsorted = dataclasses.replace(config, data=dataclasses.replace(config.data, bucket_batches=1))
    random_batches = timed_batches(task, data, unsorted, steps, clock)
    products: list[list[Product]] = []
    for batch, reading in timed_batches(task, data, config, steps, clock):
        products.append(task.products(config, sizes, batch))
        for name, training in trainings.items():
            training.step(*(next(random_batches) if name == unbucketed else (batch, reading)))
    result: Record = {name: training.speed() for name, training in trainings.items()}
    own = trainings.pop("training")
    if any(products):
        result["limit"] = share_of_limit(products[WARM_UP_STEPS:], own.seconds, clock)
    return result | {
        f"times_{name}": round(own.units_per_second / other.units_per_second, 3)
        for name, other in trainings.items()
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
