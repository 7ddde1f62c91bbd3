"""What a run needs to know of its data: encoded examples, how they become batches, and what was read.

A batch is a `NamedTuple` of arrays that the task declares. Each array goes to the arguments of its name: of the
network's `forward`, and of the criterion's. Where a batch has None instead of an array, the argument keeps its
default.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.data.files import share_of_lines
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import Tensor, io, nn

    from paddle_dialog.config.schema import DataConfig

logger = logging.getLogger("paddle_dialog")

MANY_SHARED = 0.1  # of the dev set's lines


@dataclass
class EncodedData:
    """Examples as ids."""

    # One encoded example an index; one that varies from epoch to epoch offers `set_epoch(epoch)`.
    dataset: io.Dataset
    lengths: np.ndarray  # sort keys [N] or [N, 2] that keep padding small


@dataclass
class TrainingData:
    """All that a run needs to know of its data."""

    train: EncodedData
    dev: EncodedData | None  # the examples of the dev figure, or None
    vocabularies: Mapping[str, Vocabulary]
    collate: Callable[[list[Any]], Any]
    notes: list[str] = field(default_factory=list)  # what was read, skipped and cut, a sentence each
    # What answering needs to know of the data, as files of the bundle by name; see `Task.bundle_files`.
    files: Mapping[str, bytes] = field(default_factory=dict)


def warn_of_dev_data(data: DataConfig) -> None:
    """Warn where the dev set tells nothing of new examples, or is of something else."""
    if data.dev is None:
        return
    files = Path(data.train).is_file() and Path(data.dev).is_file()
    share = float(data.dev == data.train) or (share_of_lines(data.dev, data.train) if files else 0.0)
    if share > MANY_SHARED:
        logger.warning(
            "data.dev: %.0f %% of it is in data.train, so its figures tell what was learnt by heart; hold other "
            "examples back, or set -o data.dev=null",
            100 * share,
        )
    elif data.dev.startswith("sample") and not data.train.startswith("sample"):
        logger.warning(
            "data.dev is the sample that ships, and data.train is not; name a dev set of your own, or null"
        )


def run_network(network: nn.Layer, batch: Any) -> list[Tensor]:
    """Call a network with the arrays of a batch that it takes, and return its outputs."""
    outputs = network(**_arguments(network, batch))
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def run_criterion(criterion: nn.Layer, outputs: Sequence[Tensor], batch: Any) -> Tensor:
    """Call a criterion with a network's outputs and the arrays of the batch that it takes, and return the loss."""
    return criterion(*outputs, **_arguments(criterion, batch, len(outputs)))


def as_tensors(batch: Any) -> Any:
    """Return a batch with tensors instead of arrays."""
    import paddle

    return type(batch)(*(None if array is None else paddle.to_tensor(array) for array in batch))


def _arguments(layer: nn.Layer, batch: Any, outputs: int = 0) -> dict[str, Tensor]:
    """Return the arrays that have the name of an argument of `forward`, after those that outputs fill."""
    parameters = inspect.signature(layer.forward).parameters.values()
    filled = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD][:outputs]
    defaults = {each.name: each.default for each in parameters if each.name not in filled}
    arrays = {name: array for name, array in batch._asdict().items() if name in defaults}
    empty = inspect.Parameter.empty
    return {name: array for name, array in arrays.items() if array is not None or defaults[name] is empty}
