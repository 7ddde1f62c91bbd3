"""How fast a recipe trains and a trained model answers on this machine."""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Predictor

if TYPE_CHECKING:
    from paddle_dialog.data.training_data import TrainingData
    from paddle_dialog.task import Task

WARM_UP_STEPS = 2  # the first steps allocate memory
PHASES = ("data", "forward", "backward", "optimizer")


def measure_training(task: Task, config: Any, steps: int, cpu_time: bool = False) -> Record:
    """Train some steps and report the speed.

    Args:
        steps: timed steps.
        cpu_time: count processor seconds instead of wall-clock seconds.

    Returns:
        `training`: `steps`, `<units>_per_second` (padding not counted), the shares of the phases in the time, 0 to 1,
        and `peak_memory_mb`, the largest resident memory of the process so far, in MiB.
    """
    import paddle

    from paddle_dialog.data.training_data import as_tensors
    from paddle_dialog.training.batches import Step
    from paddle_dialog.training.progress import Progress
    from paddle_dialog.training.run_folder import data_and_start
    from paddle_dialog.training.training_model import TrainingModel

    clock = time.process_time if cpu_time else time.perf_counter
    data, _ = data_and_start(task, config)
    sizes = {name: len(vocabulary) for name, vocabulary in data.vocabularies.items()}
    paddle.seed(config.seed)
    model = TrainingModel(task, config, task.build_network(config, sizes), 10_000, Progress())
    seconds = dict.fromkeys(PHASES, 0.0)
    units, began = 0, 0.0

    def ends(phase: str, result: Any = None) -> None:
        """Add the time since the last phase to this one, once its result is computed."""
        nonlocal began
        if result is not None:
            float(result.flatten()[0])  # on a GPU this waits until all before it is computed
        now = clock()
        seconds[phase] += now - began
        began = now

    def timed(phase: str, method: Callable[..., Any], result: Callable[[], Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            returned = method(*arguments)
            ends(phase, result() if returned is None else returned)
            return returned

        return call

    parameters = model.network.parameters()
    for phase, name, result in (
        ("forward", "compute_loss", lambda: None),
        ("backward", "backpropagate", lambda: next(p.grad for p in parameters if p.grad is not None)),
        ("optimizer", "update_weights", lambda: parameters[0]),
    ):
        setattr(model, name, timed(phase, getattr(model, name), result))
    batches = first_batches(task, data, config)
    for number in range(-WARM_UP_STEPS, steps):
        if number == 0:
            units, seconds = 0, dict.fromkeys(PHASES, 0.0)
        began = clock()
        batch = next(batches)
        units += task.count_units(batch)
        tensors = as_tensors(batch)
        ends("data")
        model.train_batch([Step([tensors], [1.0])])
    total = sum(seconds.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    speed = {
        "steps": steps,
        f"{task.unit}_per_second": round(units / total, 4),
        **{phase: round(value / total, 4) for phase, value in seconds.items()},
        "peak_memory_mb": round(peak, 4),
    }
    return {"training": speed}


def first_batches(task: Task, data: TrainingData, config: Any) -> Iterator[Any]:
    """Iterate over the batches of a recipe's first epoch, as arrays; a small corpus starts over."""
    order = task.training_batches(config, data.train)
    for examples in itertools.chain.from_iterable(itertools.repeat(order)):
        yield data.collate([data.train.dataset[index] for index in examples])


def measure_decoding(
    predictor: Predictor, single: Sequence[str], batch: Sequence[str], repeats: int
) -> Record:
    """Time one input alone and many at once, text to text.

    Args:
        predictor: a trained model with its decoding settings.
        single: inputs answered one by one; the median over all of them and all repeats counts.
        batch: inputs answered in one call.
        repeats: how often.

    Returns:
        `decoding`: `milliseconds_one` and `inputs_per_second`.
    """
    alone: list[float] = []
    together: list[float] = []
    for repeat in range(repeats + 1):
        one, many = [_seconds(predictor, [text]) for text in single], _seconds(predictor, batch)
        if repeat > 0:  # the first round warms up the caches
            alone += one
            together.append(many)
    return {
        "decoding": {
            "milliseconds_one": round(1000 * median(alone), 2),
            "inputs_per_second": round(len(batch) / median(together), 2),
        }
    }


def _seconds(predictor: Predictor, texts: Sequence[str]) -> float:
    began = time.perf_counter()
    list(predictor.predict_records(texts))
    return time.perf_counter() - began
