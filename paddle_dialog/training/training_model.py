"""The training step inside `paddle.Model.fit`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import paddle
from paddle import Tensor, nn

from paddle_dialog.data.training_data import as_tensors, run_criterion, run_network
from paddle_dialog.task import Task
from paddle_dialog.training.average import WeightAverage
from paddle_dialog.training.batches import Step
from paddle_dialog.training.distributed import average_gradients, averages_in_backward, meet
from paddle_dialog.training.finite import SkipCounter
from paddle_dialog.training.loss_scale import LossScale
from paddle_dialog.training.meter import Meter
from paddle_dialog.training.optimizer import build_optimizer
from paddle_dialog.training.progress import Progress


class TrainingModel(paddle.Model):
    """A `paddle.Model` whose training step skips steps that are not finite and reads nothing back from a GPU.

    Paddle's own step copies loss and metrics to the host each time, sums the gradients of accumulated batches where
    their mean is wanted, and loses those of an epoch's last batches in a resumed run.

    Args:
        task: gives the criterion and the objective.
        config: its configuration.
        network: the network.
        total_steps: of the whole run.
        progress: counts skipped steps and holds the loss scale.
        criterion: the loss; by default the task's.

    Attributes:
        meter, dev_meter: loss and objective of the training and of the dev batches.
        optimizer, clip, average, loss_scale: used by an update; the last two may be None.
    """

    def __init__(
        self,
        task: Task,
        config: Any,
        network: nn.Layer,
        total_steps: int,
        progress: Progress,
        criterion: nn.Layer | None = None,
    ) -> None:
        super().__init__(network)
        training, width = config.training, config.model.width
        self.criterion = criterion or task.build_criterion(config)
        self.objective = task.objective
        self.meter, self.dev_meter = Meter(self.objective), Meter(self.objective)
        self.skips = SkipCounter(progress, training.max_skipped)
        self.average = None if training.ema_decay is None else WeightAverage(network, training.ema_decay)
        scaled = training.amp != "none" and training.amp_dtype == "float16"
        self.loss_scale = LossScale(progress) if scaled else None
        self.optimizer, self.clip = build_optimizer(training, network, total_steps, width, self.loss_scale)
        self.mixed = training.amp != "none" and not paddle.get_device().startswith("cpu")
        level = training.amp if self.mixed else "O1"
        self._cast = {"enable": self.mixed, "level": level, "dtype": training.amp_dtype}
        # Without a loss and metrics, Paddle's loop passes on what `train_batch` returns and reads nothing.
        self.prepare(self.optimizer)

    def train_batch(self, inputs: Sequence[Step], labels: Any = None, update: bool = True) -> Tensor:
        """Take one step: each of its batches forward and backward, then the optimiser.

        Args:
            inputs: the step.
            labels: unused, as `fit` takes a step for one input of the network.
            update: unused.

        Returns:
            The loss [] of the last batch, still on the device.

        Raises:
            UserError: too many steps in a row were not finite.
        """
        (step,) = inputs
        for batch, share in zip(step.batches, step.shares, strict=True):
            loss = self.compute_loss(batch)
            self.backpropagate(loss, share)
        self.update_weights()
        return loss.detach()

    def compute_loss(self, batch: Any) -> Tensor:
        """Compute the loss [] of a batch and add it to the meter."""
        self.network.train()
        self.mode = "train"
        network = self._adapter.ddp_model if averages_in_backward() else self.network
        with paddle.amp.auto_cast(**self._cast):
            outputs = run_network(network, batch)
        low = (paddle.float16, paddle.bfloat16)
        outputs = [output.astype("float32") if output.dtype in low else output for output in outputs]
        loss = run_criterion(self.criterion, outputs, batch)
        self.meter.add(loss, self.objective.sums(self.criterion, outputs, batch), finite_only=True)
        return loss

    def backpropagate(self, loss: Tensor, share: float) -> None:
        """Add the batch's gradients: those of its loss, times its share of the step, scaled.

        If the loss is not finite, all gradients become NaN, even those that would be finite; so a bad loss shows
        in the gradients of every process.
        """
        root = paddle.full_like(loss, share)
        if self.loss_scale is not None:
            root = root * self.loss_scale.value
        loss.backward(paddle.where(paddle.isfinite(loss), root, paddle.full_like(root, math.nan)).detach())

    def update_weights(self) -> None:
        """Take a step of the optimiser, or skip it if the gradients are not finite."""
        average_gradients([p for p in self.network.parameters() if not p.stop_gradient])
        self.optimizer.step()
        self.network.clear_gradients()
        if self.loss_scale is not None:
            self.loss_scale.update(self.clip.finite)
        if self.average is not None:
            self.average.update()
        self.optimizer._learning_rate.step()
        self.skips.note(self.clip.finite)

    @paddle.no_grad()
    def measure(self, batches: Iterable[Any]) -> float:
        """Return the objective on batches of arrays, those of the other processes included."""
        self.network.eval()
        self.mode = "eval"
        self.dev_meter.reset()
        for batch in map(as_tensors, batches):
            outputs = run_network(self.network, batch)
            loss = run_criterion(self.criterion, outputs, batch)
            self.dev_meter.add(loss, self.objective.sums(self.criterion, outputs, batch))
        meet()
        return self.dev_meter.read()[1]
