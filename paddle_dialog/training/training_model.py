"""The training step inside ``paddle.Model.fit``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.schema import TrainingConfig
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
    """Loss and perplexity since the last look, added up on the device."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self._loss: Tensor | None = None
        self._nll = paddle.zeros([], "float64")
        self._tokens = paddle.zeros([], "float64")

    @paddle.no_grad()
    def add(self, loss: Tensor, nll: Tensor, tokens: Tensor) -> None:
        """Takes a batch: its loss [], token nll [B, T] and number of tokens []; one that is not finite adds 0."""
        self._loss = loss.detach()
        total = nll.astype("float64").sum()
        finite = paddle.isfinite(total).astype("float64")
        self._nll = self._nll + paddle.where(finite > 0, total, paddle.zeros_like(total))
        self._tokens = self._tokens + tokens.astype("float64") * finite

    def read(self) -> tuple[float, float]:
        """The loss of the last batch, and the perplexity per token, over all processes; NaN where there was none."""
        loss = math.nan if self._loss is None else float(self._loss)
        loss, nll, tokens = sum_over_ranks([loss, float(self._nll), float(self._tokens)])
        mean = nll / tokens if tokens else math.nan
        return loss / num_ranks(), math.exp(mean) if mean < 700.0 else math.inf if mean >= 700.0 else math.nan


class TrainingModel(paddle.Model):
    """A ``paddle.Model`` whose training step skips what is not finite and reads nothing back from a GPU.

    Paddle's own step copies loss and metrics to the host each time, adds up the gradients of accumulated batches
    where their mean is wanted, and loses those of an epoch's rest in a resumed run.

    Args:
        network: the network.
        criterion: the loss, called with the network's outputs and the labels.
        config: the training section: accumulation and mixed precision.
        batches: know which batches make a step, and each one's share of its tokens.
        progress: the run's counters.
        clip: of the optimiser; judges the gradients.
        average: of the weights, or None.
    """

    def __init__(
        self,
        network: nn.Layer,
        criterion: nn.Layer,
        config: TrainingConfig,
        batches: TrainingBatches,
        progress: Progress,
        clip: GlobalNormClip,
        average: WeightAverage | None = None,
    ) -> None:
        super().__init__(network)
        self.meter = TrainingMeter()
        self.skips = SkipCounter(progress, config.max_skipped)
        self._criterion = criterion
        self._config = config
        self._batches = batches
        self._progress = progress
        self._clip = clip
        self._average = average
        self.mixed = config.amp != "none" and not paddle.get_device().startswith("cpu")

    def train_batch(
        self, inputs: Sequence[Tensor], labels: Sequence[Tensor] | None = None, update: bool = True
    ) -> tuple[list[float], list[float]]:
        """Runs one batch forward and backward, and after the last one of a step the optimiser.

        Args:
            inputs: of the network.
            labels: of the criterion.
            update: Paddle's word on when a step ends, wrong in a resumed epoch and so not heard.

        Returns:
            What ``fit`` passes on, without values: ``meter`` has them.
        """
        self.network.train()
        self.mode = "train"
        labels = list(labels or [])
        outputs = self._forward(list(inputs))
        loss = self._criterion(*outputs, *labels)  # []
        loss.backward(self._root_gradient(loss))
        for metric in self._metrics:
            self.meter.add(loss, *metric.compute(*outputs, *labels))
        if self._batches.ends_step(self._progress.batch + 1):
            self._step()
        return [math.nan], []

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
