"""The training step inside ``paddle.Model.fit``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.objective import Objective
from paddle_dialog.training.average import WeightAverage
from paddle_dialog.training.batches import TrainingBatches
from paddle_dialog.training.distributed import (
    average_gradients,
    averages_in_backward,
    num_ranks,
    sum_over_ranks,
)
from paddle_dialog.training.finite import SkipCounter
from paddle_dialog.training.optimizer import GlobalNormClip
from paddle_dialog.training.progress import Progress


class TrainingMeter:
    """The last loss and the objective since the last look, added up on the device."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self._loss: Tensor | None = None
        self._sums: Tensor | float = 0.0  # [K]

    @paddle.no_grad()
    def add(self, loss: Tensor, sums: Sequence[Tensor], finite_only: bool = False) -> None:
        """Takes a batch.

        Args:
            loss: [].
            sums: K scalars, see ``Objective.sums``.
            finite_only: a batch whose sums are not finite adds nothing.
        """
        self._loss = loss.detach()
        added = paddle.stack(list(sums)).astype("float64")  # [K]
        if finite_only:
            added = paddle.where(paddle.isfinite(added).all(), added, paddle.zeros_like(added))
        self._sums = added + self._sums

    def read(self) -> tuple[float, float]:
        """The loss of the last batch, and the objective, over all processes; NaN where there was no batch."""
        if self._loss is None:
            return math.nan, math.nan
        assert isinstance(self._sums, Tensor)
        loss, *sums = sum_over_ranks([float(self._loss), *self._sums.numpy().tolist()])
        return loss / num_ranks(), self._objective.figure(sums)


class TrainingModel(paddle.Model):
    """A ``paddle.Model`` whose training step skips what is not finite and reads nothing back from a GPU.

    Paddle's own step copies loss and metrics to the host each time, adds up the gradients of accumulated batches
    where their mean is wanted, and loses those of an epoch's rest in a resumed run.

    Args:
        network: the network.
        criterion: the loss, called with the network's outputs and the labels.
        objective: added up over the batches.
        config: the training section: accumulation and mixed precision.
        batches: know which batches make a step, and each one's share of it.
        progress: the run's counters.
        clip: of the optimiser; judges the gradients.
        average: of the weights, or None.
    """

    def __init__(
        self,
        network: nn.Layer,
        criterion: nn.Layer,
        objective: Objective,
        config: TrainingConfig,
        batches: TrainingBatches,
        progress: Progress,
        clip: GlobalNormClip,
        average: WeightAverage | None = None,
    ) -> None:
        super().__init__(network)
        self.meter = TrainingMeter(objective)
        self.dev_meter = TrainingMeter(objective)
        self.skips = SkipCounter(progress, config.max_skipped)
        self._criterion = criterion
        self._objective = objective
        self._config = config
        self._batches = batches
        self._progress = progress
        self._clip = clip
        self._average = average
        self.mixed = config.amp != "none" and not paddle.get_device().startswith("cpu")

    def train_batch(
        self, inputs: Sequence[Tensor], labels: Sequence[Tensor] | None = None, update: bool = True
    ) -> Tensor:
        """Runs one batch forward and backward, and after the last one of a step the optimiser.

        Args:
            inputs: of the network.
            labels: of the criterion.
            update: ignored: Paddle's flag is wrong after resuming.

        Returns:
            The loss [], which stays on the device: a model that is prepared without loss and metrics, as this one
            is, reads nothing back.
        """
        self.network.train()
        self.mode = "train"
        labels = list(labels or [])
        outputs = self._forward(list(inputs))
        loss = self._criterion(*outputs, *labels)  # []
        loss.backward(self._root_gradient(loss))
        self.meter.add(loss, self._objective.sums(self._criterion, outputs, labels), finite_only=True)
        if self._batches.ends_step(self._progress.batch + 1):
            self._step()
        return loss.detach()

    @paddle.no_grad()
    def eval_batch(self, inputs: Sequence[Tensor], labels: Sequence[Tensor] | None = None) -> Tensor:
        """Adds one batch of this process to ``dev_meter`` and returns its loss []."""
        self.network.eval()
        self.mode = "eval"
        outputs = self.network(*inputs)
        outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        labels = list(labels or [])
        loss = self._criterion(*outputs, *labels)
        self.dev_meter.add(loss, self._objective.sums(self._criterion, outputs, labels))
        return loss

    def _forward(self, inputs: list[Tensor]) -> list[Tensor]:
        network: Any = self._adapter.ddp_model if averages_in_backward() else self.network
        level, dtype = self._config.amp if self.mixed else "O1", self._config.amp_dtype
        with paddle.amp.auto_cast(enable=self.mixed, level=level, dtype=dtype):
            outputs = network(*inputs)
        outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        if not self.mixed:
            return outputs
        low = (paddle.float16, paddle.bfloat16)
        return [output.astype("float32") if output.dtype in low else output for output in outputs]

    def _root_gradient(self, loss: Tensor) -> Tensor:
        """The factor of the loss: its share of the step, scaled; NaN where the loss is not finite.

        So a bad loss shows in the gradients of every process, also where its own gradient would be finite.
        """
        root = paddle.full_like(loss, self._batches.share)
        if self._clip.loss_scale is not None:
            root = root * self._clip.loss_scale.value
        return paddle.where(paddle.isfinite(loss), root, paddle.full_like(root, math.nan)).detach()

    def _step(self) -> None:
        average_gradients([p for p in self.network.parameters() if not p.stop_gradient])
        self._optimizer.step()
        self.network.clear_gradients()
        finite = self._clip.finite
        if self._clip.loss_scale is not None:
            self._clip.loss_scale.update(finite)
        if self._average is not None:
            self._average.update()
        self.skips.note(self._progress.step + 1, finite)
