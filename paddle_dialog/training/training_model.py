"""The training step inside `paddle.Model.fit`."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from typing import Any

import paddle
from paddle import Tensor, nn

from paddle_dialog.data.training_data import as_tensors, run_criterion, run_network
from paddle_dialog.errors import UserError
from paddle_dialog.objective import Objective
from paddle_dialog.task import Task
from paddle_dialog.training.batches import Step
from paddle_dialog.training.distributed import average_gradients, meet, num_ranks, sum_over_ranks
from paddle_dialog.training.optimizer import build_optimizer
from paddle_dialog.training.progress import Progress

logger = logging.getLogger("paddle_dialog")

FIRST_LOSS_SCALE = 2.0**15


class TrainingModel(paddle.Model):
    """A `paddle.Model` whose `train_batch` takes a whole step, or skips it where it is not finite.

    Args:
        progress: counts skipped steps.

    Attributes:
        meter: loss and objective of the training batches.
        optimizer, schedule: of the trained parameters; `fit` itself advances the schedule after each step.
        gradient_norm: of the last step, before clipping.
        scaler: scales the loss where float16 is computed in.
    """

    def __init__(
        self, task: Task, config: Any, network: nn.Layer, total_steps: int, progress: Progress
    ) -> None:
        super().__init__(network)
        training = config.training
        self.criterion = task.build_criterion(config)
        self.objective = task.objective
        self.meter = Meter(task.objective)
        self.optimizer, self.schedule = build_optimizer(training, network, total_steps, config.model.width)
        self.gradient_norm = math.nan
        self.mixed = training.amp != "none" and not paddle.get_device().startswith("cpu")
        scaled = self.mixed and training.amp_dtype == "float16"
        self.scaler = paddle.amp.GradScaler(enable=scaled, init_loss_scaling=FIRST_LOSS_SCALE)
        self._cast = {
            "enable": self.mixed,
            "level": training.amp if self.mixed else "O1",
            "dtype": training.amp_dtype,
        }
        self._trained = [parameter for parameter in network.parameters() if not parameter.stop_gradient]
        self._largest_norm = math.inf if training.clip_norm is None else training.clip_norm
        self._progress = progress
        self._max_skipped = training.max_skipped
        # Without a loss and metrics, `fit` passes on what `train_batch` returns and reads nothing.
        self.prepare(self.optimizer)

    def resume(self) -> None:
        """Set schedule and loss scale to where the run stands."""
        self.schedule.step(self._progress.step)
        if self._progress.scaler:
            self.scaler.load_state_dict(self.scaler.state_dict() | self._progress.scaler)

    def scaler_state(self) -> dict[str, float]:
        """Return what a checkpoint keeps of the scaler; empty where the loss is not scaled."""
        return {name: float(value) for name, value in self.scaler.state_dict().items()}

    def train_batch(self, inputs: Sequence[Step], labels: Any = None, update: bool = True) -> Tensor:
        """Take one step: each of its batches forward and backward, then the optimiser.

        Args:
            inputs: the step.
            labels: unused, as `fit` takes a step for one input of the network.
            update: unused.

        Returns:
            The loss [] of the last batch.

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
        with paddle.amp.auto_cast(**self._cast):
            outputs = run_network(self.network, batch)
        low = (paddle.float16, paddle.bfloat16)
        outputs = [output.astype("float32") if output.dtype in low else output for output in outputs]
        loss = run_criterion(self.criterion, outputs, batch)
        self.meter.add(loss, self.objective.sums(self.criterion, outputs, batch), finite_only=True)
        return loss

    def backpropagate(self, loss: Tensor, share: float) -> None:
        """Add the gradients of a batch's loss, times its share of the step.

        If the loss is not finite, all gradients become NaN, even those that would be finite; so a bad loss shows
        in the gradients of every process.
        """
        root = paddle.where(
            paddle.isfinite(loss), paddle.full_like(loss, share), paddle.full_like(loss, math.nan)
        )
        self.scaler.scale(loss).backward(root.detach())

    def update_weights(self) -> None:
        """Take a step of the optimiser, or skip it if the gradients are not finite."""
        average_gradients(self._trained)
        self.scaler.unscale_(self.optimizer)
        self.gradient_norm = self._clip_gradients()
        finite = math.isfinite(self.gradient_norm)
        if finite:
            self.scaler.step(self.optimizer)
        self.scaler.update()
        self.network.clear_gradients()
        self._count(finite)

    @paddle.no_grad()
    def _clip_gradients(self) -> float:
        """Scale all gradients by min(1, clip_norm / norm) (Pascanu et al. 2013, algorithm 1), and return the norm.

        It takes a sixth of the time of `paddle.nn.utils.clip_grad_norm_`, which makes up 6 % of a step on a CPU.
        """
        gradients = [parameter.grad for parameter in self._trained if parameter.grad is not None]
        squares = [paddle.square(gradient.astype("float32")).sum() for gradient in gradients]
        norm = float(paddle.sqrt(paddle.add_n(squares)))
        if norm > self._largest_norm:
            for gradient in gradients:
                gradient.scale_(self._largest_norm / norm)
        return norm

    def _count(self, finite: bool) -> None:
        """Count skipped steps; too many in a row end the run."""
        progress, step = self._progress, self._progress.step + 1
        if finite:
            progress.skipped_in_a_row = 0
            return
        progress.skipped += 1
        progress.skipped_in_a_row += 1
        logger.warning("step %d skipped: loss or gradient not finite (%d in all)", step, progress.skipped)
        if progress.skipped_in_a_row >= self._max_skipped:
            raise UserError(
                f"step {step}: the loss or gradient of {progress.skipped_in_a_row} steps in a row was not "
                "finite (training.max_skipped); look at the data of these steps or lower "
                "training.learning_rate, and continue from the last checkpoint with --resume auto"
            )

    @paddle.no_grad()
    def measure(self, batches: Iterable[Any]) -> float:
        """Return the objective on batches of arrays, those of the other processes included."""
        self.network.eval()
        meter = Meter(self.objective)
        for batch in map(as_tensors, batches):
            outputs = run_network(self.network, batch)
            loss = run_criterion(self.criterion, outputs, batch)
            meter.add(loss, self.objective.sums(self.criterion, outputs, batch))
        meet()
        return meter.read()[1]


class Meter:
    """The last loss and the objective since the last `reset`; the sums stay on the device."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self.reset()

    def reset(self) -> None:
        """Start over."""
        self._loss: Tensor | None = None
        self._sums: Tensor | float = 0.0  # [K]

    @paddle.no_grad()
    def add(self, loss: Tensor, sums: Sequence[Tensor], finite_only: bool = False) -> None:
        """Add a batch.

        Args:
            loss: [].
            sums: K scalars, see `Objective.sums`.
            finite_only: a batch whose sums are not finite adds nothing.
        """
        self._loss = loss.detach()
        added = paddle.stack(list(sums)).astype("float64")  # [K]
        if finite_only:
            added = paddle.where(paddle.isfinite(added).all(), added, paddle.zeros_like(added))
        self._sums = added + self._sums

    def read(self) -> tuple[float, float]:
        """Return the loss of the last batch, and the objective, over all processes; NaN where there was no batch."""
        if self._loss is None:
            return math.nan, math.nan
        assert isinstance(self._sums, Tensor)
        loss, *sums = sum_over_ranks([float(self._loss), *self._sums.numpy().tolist()])
        return loss / num_ranks(), self._objective.figure(sums)
