"""One training run, from the config to the bundles; `Run.step` is a training step from top to bottom."""

from __future__ import annotations

import logging
import math
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from filelock import FileLock
from paddle import Tensor, nn

from paddle_dialog.bundle.folder import (
    THROUGH_PADDLE,
    Bundle,
    bundle_exists,
    finish_save,
    load_bundle,
    save_bundle,
)
from paddle_dialog.bundle.weights import read_weights, set_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.data.batching import TrainingData, as_tensors, epoch_steps, run_criterion, run_network
from paddle_dialog.errors import UserError
from paddle_dialog.metrics import has_paddlenlp
from paddle_dialog.models.pretrained_base import base_files, with_hash
from paddle_dialog.task import Task
from paddle_dialog.training import start
from paddle_dialog.training.distributed import (
    average_gradients,
    barrier,
    is_main,
    num_ranks,
    orderly_stop,
    rank,
    sum_over_ranks,
)
from paddle_dialog.training.optimizer import build_optimizer, clip_gradients
from paddle_dialog.training.progress import Meter, Progress, Report, Stop, configure_logging, model_card
from paddle_dialog.training.run_folder import (
    answers_differ,
    changed_since,
    file_hashes,
    find_start,
    pack_training_state,
    refuse_earlier_run,
    remove_earlier_run,
    restore_training_state,
    write_config,
)

if has_paddlenlp():
    import paddlenlp.metrics  # noqa: F401  (loading it takes SIGTERM for itself: before `orderly_stop` does)

logger = logging.getLogger("paddle_dialog")

FIRST_LOSS_SCALE = 2.0**15
MAX_SKIPPED = 10  # steps in a row whose loss or gradient is not finite, after which the run ends
ANSWERS_DIFFER = "the network's answers to dev examples differ from those of its steps in NumPy"
SHOWN_EXAMPLES = 4  # of the dev set, decoded at each evaluation


class Run:
    """A training run in its folder, made by `begin` or `resume`.

    Args:
        network: with the weights that training starts from.
        lock: of the folder; released when the run has ended.

    Attributes:
        stop: why the run stops; None while it continues.
        order: the examples of each batch of an epoch.
        reading: seconds spent on making batches since the last report.
    """

    def __init__(
        self,
        task: Task,
        config: Any,
        data: TrainingData,
        network: nn.Layer,
        progress: Progress,
        lock: FileLock,
    ) -> None:
        self.task, self.config, self.data, self.network, self.progress = task, config, data, network, progress
        self.folder = Path(config.output_dir)
        self.stop: Stop | None = None
        self._lock = lock
        training = config.training
        barrier()  # they have read the data at their own speeds
        if sum_over_ranks([progress.step])[0] != num_ranks() * progress.step:
            raise UserError(
                "the processes resume from different steps; let all of them see the same output_dir and data"
            )
        progress.bind(task.objective.name, num_ranks(), config.data.batch_size)
        self.order = task.training_batches(config, data.train, num_ranks(), rank())
        progress.count_batches(0, len(self.order))  # the data may have become fewer
        self.total_steps = progress.total_steps(training, len(self.order))
        self._dev = start.dev_batches(config, data)
        self._criterion = task.build_criterion(config)
        self.optimizer, self.schedule = build_optimizer(
            training, network, self.total_steps, config.model.width
        )
        self._trained = [parameter for parameter in network.parameters() if not parameter.stop_gradient]
        mixed = training.amp != "none" and not paddle.get_device().startswith("cpu")
        self._cast = {"enable": mixed, "level": training.amp if mixed else "O1", "dtype": training.amp_dtype}
        scaled = mixed and training.amp_dtype == "float16"
        self.scaler = paddle.amp.GradScaler(enable=scaled, init_loss_scaling=FIRST_LOSS_SCALE)
        self._meter = Meter(task.objective)
        self._gradient_norm = math.nan
        self._report: Report | None = None
        self._answers_differ: bool | None = None  # unknown before the first best
        self._stop_requested: Callable[[], bool] = lambda: False
        self._restart_clock()
        # Here the processes exchange their weights. Last, as a run refused above would keep its lock in this cycle.
        self._fit = _Fit(self)

    @classmethod
    def begin(cls, task: Task, config: Any, overwrite: bool = False) -> Run:
        """Begin a new run.

        Args:
            overwrite: remove an earlier run in the folder, once everything about the new one has been checked.
        """
        if not overwrite:
            refuse_earlier_run(Path(config.output_dir))
        run = cls._new(task, config)
        if is_main():
            remove_earlier_run(run.folder)
        return run

    @classmethod
    def _new(cls, task: Task, config: Any) -> Run:
        """Make a run at step 0, which has changed nothing in its folder but the log."""
        config = with_hash(config)
        lock = start.open_folder(config)
        data, network, section = start.prepare(task, config)
        progress = Progress(start=section, files=file_hashes(task, config))
        return cls(task, config, data, network, progress, lock)

    @classmethod
    def resume(cls, task: Task, config: Any, checkpoint: str = "auto") -> Run:
        """Resume a run from its checkpoint.

        Args:
            checkpoint: a checkpoint or a run's folder, or `auto` for the newest one of the config's `output_dir`;
                if `auto` finds none, a new run begins.
        """
        folder = Path(config.output_dir)
        found = find_start(folder, task.name, checkpoint)
        if found is None:
            run = cls._new(task, config)
            logger.info("%s: nothing to resume, so the run begins", folder)
            return run
        where, bundle, progress = found
        config = with_hash(config)
        files = file_hashes(task, config)
        changes = changed_since(where, bundle, config, progress.files, files)
        progress.files = files
        lock = start.open_folder(config)
        for change in changes.values():
            logger.warning("%s", change)
        data = task.prepare_data_like(config, bundle)
        network = start.build_checked_network(task, config, data)
        run = cls(task, config, data, network, progress, lock)
        if run._dev is not None and changes.keys() & {"data.dev", "training.max_dev"}:
            run._measure_best_anew(where.parent / "best")
        restore_training_state(bundle, where, progress, run.optimizer, network)
        run.schedule.step(progress.step)
        if progress.scaler:
            run.scaler.load_state_dict(run.scaler.state_dict() | progress.scaler)
        if is_main():
            for name in ("last", "best"):
                finish_save(folder / name)
        logger.info("resumed from %s at step %d", where, progress.step)
        return run

    def _measure_best_anew(self, best: Path) -> None:
        """Measure the best model so far on a dev set that has changed since; forget it if it is not there."""
        progress, objective = self.progress, self.task.objective
        step, progress.best_step, progress.best_figure = progress.best_step, 0, None
        progress.evaluations_without_gain = 0
        if not step or not bundle_exists(best):
            return
        set_weights(self.network, load_bundle(best).weights, best)
        figure = self._measure()
        message = "data.dev has changed: the best model so far, of step %d, has the %s %s on it"
        logger.info(message, step, objective.name, objective.show(figure))
        if math.isfinite(figure):
            progress.best_step, progress.best_figure = step, figure

    @property
    def _completion(self) -> Stop | None:
        """Why the run is complete, or None."""
        return self.progress.completion(self.total_steps, self.config.training.patience)

    def train(self) -> Progress:
        """Train to the end, or until Ctrl-C or SIGTERM asks to stop after the current step.

        Returns:
            The progress; `stop` says why the run stopped.
        """
        try:
            start.announce(self.config, self.data, self.network, self.total_steps)
            self.stop = self._completion
            if not (self.stop and self.progress.finished):  # else nothing is left to do
                if is_main():
                    write_config(self.folder, dump(self.config))
                # The launcher repeats its signal, also during the save.
                with orderly_stop() as self._stop_requested:
                    if self.stop is None:
                        self._train_steps()
                    self._save_results()
                    barrier()  # the launcher ends a process that outlives another
            elif self.stop is Stop.FINISHED:
                logger.info("the run has already finished, at step %d", self.progress.step)
            self._log_stop()
            return self.progress
        finally:
            configure_logging()  # later messages of the process do not go to the run's log
            self._lock.release()

    def _log_stop(self) -> None:
        """Log why the run stops before its last step."""
        progress = self.progress
        if self.stop is Stop.EARLY:
            logger.info(
                "the run has ended early, at step %d: its dev %s was best at step %d and did not get better in %d "
                "evaluations (training.patience)",
                progress.step,
                self.task.objective.name,
                progress.best_step,
                progress.evaluations_without_gain,
            )
        if self.stop is Stop.REQUESTED:
            none = "" if progress.best_step or self.data.dev is None else ", without a 'best' yet"
            message = "stopped at step %d%s; --resume auto continues: %s -c %s --resume auto"
            command = "python tools/train.py" if sys.argv[0].endswith("train.py") else "paddle-dialog train"
            logger.info(message, progress.step, none, command, shlex.quote(str(self.folder)))

    def _train_steps(self) -> None:
        barrier()
        if is_main():
            self._report = Report(self.folder / "vdl", self.config, self.task.objective, self.task.unit)
        self._restart_clock()
        # The model is its own data loader.
        self._fit.fit(self._fit, epochs=self.config.training.epochs - self.progress.epoch, verbose=0)
        if self._report is not None:
            self._report.close()

    def step(self, batches: Sequence[tuple[Any, int]]) -> None:
        """Take one step of the optimiser, or skip it where it is not finite; then do what is due after it.

        Args:
            batches: the batches that the step learns from, as tensors, each with its units (see `Task.count_units`),
                by which it is weighted.
        """
        progress, training = self.progress, self.config.training
        self._seed_dropout()
        units = sum(count for _, count in batches)
        self._units += units
        for batch, count in batches:
            loss = self._forward(batch, count)
            self._backward(loss, count / units if units else 1.0 / len(batches))
        stop_requested = average_gradients(self._trained, units, self._stop_requested())
        self.scaler.unscale_(self.optimizer)
        self._gradient_norm = clip_gradients(self._trained, training.clip_norm)
        finite = math.isfinite(self._gradient_norm)
        if finite:
            self.scaler.step(self.optimizer)
        self.scaler.update()
        self.network.clear_gradients()

        progress.count_batches(len(batches), len(self.order))
        progress.step += 1
        self._count_skipped(not finite)
        self.stop = self._completion or (Stop.REQUESTED if stop_requested else None)
        if progress.step % training.log_every == 0 or self.stop:
            self._report_progress()
        every = training.eval_every
        due = progress.step % every == 0 if every else progress.batch == 0
        if due or self.stop is Stop.FINISHED:
            self._evaluate()
        if progress.step % training.save_every == 0:
            self._save("last")
            barrier()
        self.schedule.step()

    def _seed_dropout(self) -> None:
        """Seed dropout by the position of the step's first batch, in each process differently.

        So a resumed run repeats the random numbers without a stored generator state, whatever else draws numbers in
        between.
        """
        position = self.progress.epoch * len(self.order) + self.progress.batch + 1
        paddle.seed((self.config.seed * 1_000_003 + position + rank() * 500_000_003) % 2**31)

    def _forward(self, batch: Any, units: int) -> Tensor:
        """Compute the loss [] of a batch and add it to the meter."""
        self.network.train()
        self._criterion.train()
        with paddle.amp.auto_cast(**self._cast):
            outputs = run_network(self.network, batch)
        low = (paddle.float16, paddle.bfloat16)
        outputs = [output.astype("float32") if output.dtype in low else output for output in outputs]
        loss = run_criterion(self._criterion, outputs, batch)
        sums = self.task.objective.sums(self._criterion, outputs, batch)  # of what it keeps, e.g. `token_nll`
        self._meter.add(loss, sums, units, finite_only=True)
        return loss

    def _backward(self, loss: Tensor, share: float) -> None:
        """Add the gradients of a batch's loss, times its share of the step.

        If the loss is not finite, all gradients become NaN, even those that would be finite; so a bad loss shows
        in the gradients of every process.
        """
        root = paddle.where(
            paddle.isfinite(loss), paddle.full_like(loss, share), paddle.full_like(loss, math.nan)
        )
        self.scaler.scale(loss).backward(root.detach())

    def _count_skipped(self, skipped: bool) -> None:
        """Count the step if it was skipped; too many in a row end the run."""
        progress = self.progress
        progress.skipped += skipped
        progress.skipped_in_a_row = progress.skipped_in_a_row + 1 if skipped else 0
        if skipped:
            message = "step %d skipped: loss or gradient not finite (%d in all)"
            logger.warning(message, progress.step, progress.skipped)
        if progress.skipped_in_a_row >= MAX_SKIPPED:
            raise UserError(
                f"step {progress.step}: the loss or gradient of {MAX_SKIPPED} steps in a row was not finite; look at "
                "the data of these steps or lower training.learning_rate, and continue from the last checkpoint with "
                "--resume auto"
            )

    def _report_progress(self) -> None:
        """Report what was measured since the last report."""
        progress, task, steps = self.progress, self.task, self.total_steps
        loss, figure = self._meter.read()
        self._meter = Meter(task.objective)
        elapsed = self._count_seconds()
        figures = {
            "loss": loss,
            task.objective.name: figure,  # on the training batches, with dropout
            "learning_rate": float(self.schedule()),
            "gradient_norm": self._gradient_norm,
            f"{task.unit}_per_second": sum_over_ranks([self._units])[0] / elapsed,
            "reader_share": self.reading / elapsed,
            "skipped_steps": float(progress.skipped),
        }
        if self._report is not None:
            epochs = progress.epoch + progress.batch / len(self.order)
            left = elapsed / (progress.step - self._first) * (steps - progress.step)
            self._report.step(progress.step, f"{steps} epoch {epochs:.2f}", figures, left)
        self._restart_clock()

    def _evaluate(self) -> None:
        """Measure the weights on the dev set, unless they have been, and save them if they are the best."""
        progress = self.progress
        if self._dev is None or (progress.curve and progress.curve[-1][0] == progress.step):
            return
        self._count_seconds()
        figure = self._measure()
        best = progress.add_figure(figure, self.task.objective)
        if best:
            self._save("best")
        if self._report is not None:
            display = self.task.display(self.config, self.network, self.data, SHOWN_EXAMPLES)
            self._report.evaluation(progress.step, figure, best, display)
        barrier()
        self._restart_clock()  # the time of an evaluation is not training time
        self.stop = self.stop or self._completion

    @paddle.no_grad()
    def _measure(self) -> float:
        """Return the objective on the dev set, over all processes."""
        assert self.data.dev is not None and self._dev is not None
        self.network.eval()
        self._criterion.eval()
        meter = Meter(self.task.objective)
        for indices in self._dev:
            batch = as_tensors(self.data.collate([self.data.dev.dataset[index] for index in indices]))
            outputs = run_network(self.network, batch)
            loss = run_criterion(self._criterion, outputs, batch)
            meter.add(loss, self.task.objective.sums(self._criterion, outputs, batch))
        barrier()
        return meter.read()[1]

    def _count_seconds(self) -> float:
        elapsed = time.perf_counter() - self._since
        self.progress.seconds += elapsed
        return elapsed

    def _restart_clock(self) -> None:
        """Begin the averages of the next report."""
        self._since = time.perf_counter()
        self._first = self.progress.step
        self._units = 0
        self.reading = 0.0

    def _save_results(self) -> None:
        self.progress.finished = self._completion is not None
        if self.data.dev is None:
            self._save("best")
        self._save("last")  # last: a finished checkpoint says that all else is saved
        if self.data.dev is not None and self.progress.finished and self.progress.best_step == 0:
            name = self.task.objective.name
            why = f"no dev {name} was finite" if self.progress.curve else "the dev set was never evaluated"
            logger.warning(
                "%s: there is no 'best', as %s; the weights of step %d are in 'last'",
                self.folder,
                why,
                self.progress.step,
            )

    def _save(self, name: str) -> None:
        """Save the model as `best`, or, with all that a resumed run needs, as `last`.

        With the first best, the answers through Paddle and in NumPy are compared.
        """
        if not is_main():
            return
        task, config, data, progress = self.task, self.config, self.data, self.progress
        if name == "best" and self._answers_differ is None:
            self._answers_differ = answers_differ(task, config, self.network, data)
            if self._answers_differ:
                logger.warning("%s, so 'best' answers through Paddle", ANSWERS_DIFFER)
        files = task.bundle_files(config, data.vocabularies, data.files) | base_files(config)
        if self._answers_differ:
            files[THROUGH_PADDLE] = f"{ANSWERS_DIFFER}\n".encode()
        if name == "last":
            progress.scaler = {key: float(value) for key, value in self.scaler.state_dict().items()}
            files |= pack_training_state(progress, self.optimizer, self.network)
        card = model_card(task, config, progress, len(self.order), data.notes)
        weights = read_weights(self.network)
        bundle = Bundle(task.name, dump(config), data.vocabularies, weights, card, files)
        save_bundle(bundle, self.folder / name)


class _Fit(paddle.Model):
    """The only part that knows `paddle.Model.fit`, which iterates over this and calls `train_batch` on each item."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.network)
        self._run = run
        self._batches: Sequence[tuple[Any, int]] = ()
        self.prepare()  # without a loss, metrics and an optimiser: a step does all of it

    def __len__(self) -> int:
        return len(self._run.order)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Iterate over the steps that are left of the epoch, until the run stops."""
        run, progress, accumulate = self._run, self._run.progress, self._run.config.training.accumulate
        steps = epoch_steps(
            run.data, run.order, run.task.count_units, accumulate, progress.epoch, progress.batch
        )
        began = time.perf_counter()
        for self._batches in steps:
            run.reading += time.perf_counter() - began
            yield np.array([len(self._batches)])  # `fit` asks for an array, flattens tuples, and passes it on
            if run.stop is not None:
                return
            began = time.perf_counter()

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> None:
        """Take a step; where the run stops, let `fit` begin no further epoch."""
        self._run.step(self._batches)
        self.stop_training = self._run.stop is not None
