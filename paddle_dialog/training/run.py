"""One training run, from the config to the bundles, around `paddle.Model.fit`."""

from __future__ import annotations

import logging
import math
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from filelock import FileLock
from paddle import nn

from paddle_dialog.bundle.folder import Bundle, save_bundle
from paddle_dialog.bundle.weights import grow_weights, read_weights, set_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.config.models import PretrainedConfig, memory_problem
from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.data.training_data import TrainingData, warn_of_dev_data
from paddle_dialog.errors import UserError
from paddle_dialog.models.pretrained_base import base_files, with_hash
from paddle_dialog.objective import has_paddlenlp
from paddle_dialog.task import Display, Task
from paddle_dialog.training.batches import Step, TrainingBatches, lost_loader
from paddle_dialog.training.distributed import (
    any_rank,
    is_main,
    meet,
    num_ranks,
    orderly_stop,
    rank,
    require_agreement,
    sum_over_ranks,
)
from paddle_dialog.training.progress import Plan, Progress, Stop
from paddle_dialog.training.report import Curves, Evaluation, StepReport, TextLog, close_log_file, model_card
from paddle_dialog.training.run_folder import (
    TRAINING_FILES,
    BestModels,
    changed_settings,
    data_and_start,
    find_start,
    finish_saves,
    load_progress,
    make_folder,
    pack_training_state,
    refuse_earlier_run,
    remove_earlier_run,
    restore_training_state,
    write_config,
)
from paddle_dialog.training.training_model import TrainingModel

if has_paddlenlp():
    import paddlenlp.metrics  # noqa: F401  (loading it takes SIGTERM for itself: before `orderly_stop` does)

logger = logging.getLogger("paddle_dialog")


class Run(paddle.callbacks.Callback):
    """A training run in its folder, made by `begin` or `resume`.

    `fit` iterates over it, which gives the steps, and calls it back around each step.

    Args:
        network: with the weights that training starts from.
        lock: of the folder; released when the run has ended.

    Attributes:
        stop: why the run stops; None while it goes on.
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
        super().__init__()
        self._lock = lock
        self.task = task
        self.config = config
        self.folder = Path(config.output_dir)
        self.data = data
        self.progress = progress
        self.stop: Stop | None = None
        require_agreement(progress.step, "the step they resume from")
        progress.set_objective(task.objective.name)
        progress.set_layout(num_ranks(), config.data.batch_size)
        self.batches = TrainingBatches(task, config, data, progress)
        if progress.batch == len(self.batches):  # as earlier versions counted the end of an epoch
            progress.count_batches(0, len(self.batches))
        self.plan = Plan.going_on(config.training, len(self.batches), progress)
        self._dev = _dev_indices(config, data)
        self._best = BestModels(self.folder, progress, task.objective, config.training.keep_best, self._save)
        self._sinks: list[TextLog | Curves] = []
        self._stop_requested: Callable[[], bool] = lambda: False
        self._restart_clock()
        meet()  # the processes exchange their weights
        self.model = TrainingModel(task, config, network, self.plan.total_steps, progress)

    @classmethod
    def begin(cls, task: Task, config: Any, overwrite: bool = False) -> Run:
        """Begin a new run.

        Args:
            overwrite: remove an earlier run in the folder, once everything about the new one has been checked.

        Raises:
            UserError: the folder holds a run, or settings or data cannot be used.
        """
        if not overwrite:
            refuse_earlier_run(Path(config.output_dir))
        run = cls._from_the_start(task, config)
        if is_main():
            remove_earlier_run(run.folder)
        return run._ready()

    @classmethod
    def resume(cls, task: Task, config: Any, checkpoint: str = "auto") -> Run:
        """Resume a run from its checkpoint.

        Args:
            checkpoint: a checkpoint or a run's folder, or `auto` for the newest one of the config's `output_dir`;
                if `auto` finds none, a new run begins.

        Raises:
            UserError: there is no such checkpoint, or it belongs to another run or model.
        """
        folder = Path(config.output_dir)
        found = find_start(folder, task.name, checkpoint)
        if found is None:
            run = cls._from_the_start(task, config)
            logger.info("%s: nothing to resume, so the run begins", folder)
            return run._ready()
        where, bundle = found
        if isinstance(config.model, PretrainedConfig):
            config = with_hash(config)
        changes = changed_settings(where, bundle, config)
        lock = _announce(task, config)
        for change in changes:
            logger.warning("%s", change)
        data = task.prepare_data_like(config, bundle)
        network = _build_network(task, config, data)
        run = cls(task, config, data, network, load_progress(bundle, where), lock)
        restore_training_state(bundle, where, run.model.optimizer, run.model.network)
        run.model.resume()
        if is_main():
            finish_saves(run.folder)
        logger.info("resumed from %s at step %d", where, run.progress.step)
        return run._ready()

    @classmethod
    def _from_the_start(cls, task: Task, config: Any) -> Run:
        """Make a run at step 0, which has changed nothing in its folder but the log."""
        if isinstance(config.model, PretrainedConfig):
            config = with_hash(config)
        lock = _announce(task, config)
        data, start = data_and_start(task, config)
        network = _build_network(task, config, data)
        fitted = task.fitted_weights(config, data)
        if start is not None:
            named = config.training.start_from
            taken = _weights_of_start(task, network, start, named)
            set_weights(network, {**taken, **fitted}, named)
        elif fitted:
            set_weights(network, {**read_weights(network), **fitted}, "fitted weights")
        began = "" if start is None else _section_on_start(task, config, start, data, fitted)
        return cls(task, config, data, network, Progress(start=began), lock)

    def _ready(self) -> Run:
        """Save the settings, and log what the run is about to do."""
        for note in self.data.notes:
            logger.info("%s", note)
        if is_main() and not self._is_over:
            write_config(self.folder, dump(self.config))
        count = sum(math.prod(parameter.shape) for parameter in self.model.network.parameters())
        logger.info("%s parameters, %d steps in all", f"{count:,}", self.plan.total_steps)
        if not has_paddlenlp():
            logger.info("PaddleNLP is not installed: a perplexity is computed without its metric")
        warn_of_dev_data(self.config.data)
        warm_up = self.config.training.warmup_steps
        if warm_up >= self.plan.total_steps:
            logger.warning(
                "training.warmup_steps is %d and the run has %d steps: the rate never reaches its height; "
                "set -o training.warmup_steps=%d",
                warm_up,
                self.plan.total_steps,
                self.plan.total_steps // 10,
            )
        return self

    @property
    def _is_over(self) -> bool:
        """Whether the run had ended before it was resumed, and nothing is left to do."""
        return self.progress.finished and self.plan.completion(self.progress) is not None

    def train(self) -> Progress:
        """Train to the end, or until Ctrl-C or SIGTERM asks to stop after the current step.

        Returns:
            The progress; `stop` says why the run stopped.
        """
        try:
            self.stop = self.plan.completion(self.progress)
            if self._is_over:
                logger.info("the run has already finished, at step %d", self.progress.step)
                return self.progress
            if self.stop is None:
                self._fit()
            self._save_results()
            return self.progress
        finally:
            close_log_file()
            self._lock.release()

    def _fit(self) -> None:
        meet()
        training = self.config.training
        if training.amp != "none" and not self.model.mixed:
            logger.info("training.amp: has no effect on the CPU, where Paddle computes in float32")
        if is_main():
            objective, unit = self.task.objective, self.task.unit
            curves = Curves(self.folder / "vdl", self.config, objective, unit)
            self._sinks = [TextLog(objective, unit), curves]
        self._restart_clock()
        with orderly_stop() as self._stop_requested, lost_loader():
            self.model.fit(self, epochs=training.epochs - self.progress.epoch, verbose=0, callbacks=[self])
        for sink in self._sinks:
            sink.close()
        if self.stop is Stop.REQUESTED:
            none = "" if self.progress.best_step or self.data.dev is None else ", without a 'best' yet"
            told = "stopped at step %d%s; --resume auto continues: %s -c %s --resume auto"
            command = "python tools/train.py" if sys.argv[0].endswith("train.py") else "paddle-dialog train"
            logger.info(told, self.progress.step, none, command, shlex.quote(str(self.folder)))

    # The way of a step: `fit` asks for one (`__iter__`), then calls what follows, with `TrainingModel.train_batch`
    # after `on_train_batch_begin`; its own callback advances the learning rate at the end.

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Step]:
        """Iterate over the steps that are left of the epoch, until the run stops."""
        for step in self.batches:
            yield step
            if self.stop is not None:
                return

    def on_train_batch_begin(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Seed dropout by the position of the step's first batch, in each process differently.

        So a resumed run repeats the random numbers without a stored generator state, whatever else draws numbers in
        between.
        """
        position = self.progress.epoch * self.plan.batches_per_epoch + self.progress.batch + 1
        paddle.seed((self.config.seed * 1_000_003 + position + rank() * 500_000_003) % 2**31)

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        """Count the step, and an epoch that it ends; then report, evaluate, save and stop, each when it is due."""
        plan, progress = self.plan, self.progress
        progress.count_batches(plan.settings.accumulate, plan.batches_per_epoch)
        progress.step += 1
        self.stop = (
            plan.completion(progress) or self._stop_requested_anywhere()
        )  # a finished run is not interrupted
        if plan.reports_after(progress.step) or self.stop:
            self._report()
        if plan.evaluates_after(progress.step, ends_epoch=progress.batch == 0):
            self._evaluate()
        if plan.saves_after(progress.step):
            self._save_checkpoint()
            meet()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Let `fit` begin no further epoch where the run stops."""
        self.model.stop_training = self.stop is not None

    def _stop_requested_anywhere(self) -> Stop | None:
        """Return why to stop if any process was asked to; all leave at the same step, or some would wait forever.

        On GPUs they ask each other only now and then, because the answer stalls the queue.
        """
        every = 1 if num_ranks() == 1 or paddle.get_device() == "cpu" else 20
        return (
            Stop.REQUESTED if self.progress.step % every == 0 and any_rank(self._stop_requested()) else None
        )

    def _report(self) -> None:
        """Report the averages since the last report."""
        plan, progress, model = self.plan, self.progress, self.model
        loss, figure = model.meter.read()
        elapsed = self._count_seconds()
        report = StepReport(
            step=progress.step,
            total_steps=plan.total_steps,
            epoch=progress.epoch + progress.batch / plan.batches_per_epoch,
            loss=loss,
            figure=figure,
            learning_rate=float(model.schedule()),
            gradient_norm=model.gradient_norm,
            units_per_second=sum_over_ranks([self.batches.units])[0] / elapsed,
            reader_share=self.batches.reader_seconds / elapsed,
            seconds_left=elapsed / (progress.step - self._first) * (plan.total_steps - progress.step),
            skipped=progress.skipped,
        )
        for sink in self._sinks:
            sink.step(report)
        model.meter.reset()
        self._restart_clock()

    def _evaluate(self) -> None:
        """Measure the weights on the dev set, unless they have been, and keep them if they are among the best."""
        progress = self.progress
        if self._dev is None or (progress.curve and progress.curve[-1][0] == progress.step):
            return
        self._count_seconds()
        figure = self.model.measure(self._dev_batches())
        progress.curve.append((progress.step, figure))
        best = self._best.consider(figure)
        progress.evaluations_without_gain = 0 if best else progress.evaluations_without_gain + 1
        display = Display()
        if is_main():
            count = self.config.training.show_examples
            display = self.task.display(self.config, self.model.network, self.data, count)
        for sink in self._sinks:
            sink.evaluation(Evaluation(progress.step, figure, best, display))
        meet()
        self._restart_clock()  # the time of an evaluation is not training time
        self.stop = self.stop or self.plan.completion(progress)

    def _dev_batches(self) -> Iterator[Any]:
        """Iterate over this process's share of the dev examples as batches of arrays."""
        assert self.data.dev is not None and self._dev is not None
        for indices in self._dev:
            yield self.data.collate([self.data.dev.dataset[index] for index in indices])

    def _count_seconds(self) -> float:
        elapsed = time.perf_counter() - self._since
        self.progress.seconds += elapsed
        return elapsed

    def _restart_clock(self) -> None:
        """Begin the averages of the next report."""
        self._since = time.perf_counter()
        self._first = self.progress.step
        self.batches.units = 0
        self.batches.reader_seconds = 0.0

    def _save_results(self) -> None:
        self.progress.finished = self.plan.completion(self.progress) is not None
        if self.data.dev is None:
            self._save("best")
        self._save_checkpoint()  # the last: whoever finds it finished finds all else
        if self.data.dev is not None and self.progress.finished and self.progress.best_step == 0:
            name = self.task.objective.name
            why = f"no dev {name} was finite" if self.progress.curve else "the dev set was never evaluated"
            logger.warning(
                "%s: there is no 'best', as %s; the weights of step %d are in 'last'",
                self.folder,
                why,
                self.progress.step,
            )

    def _save_checkpoint(self) -> None:
        self._save("last", resumable=True)

    def _save(self, name: str, resumable: bool = False) -> None:
        if not is_main():
            return
        task, config, data, model, progress = self.task, self.config, self.data, self.model, self.progress
        files = task.bundle_files(config, data.vocabularies, data.files)
        if isinstance(config.model, PretrainedConfig):
            files |= base_files(config)
        if resumable:
            progress.scaler = model.scaler_state()
            files |= pack_training_state(progress, model.optimizer, model.network)
        card = model_card(task, config, progress, self.plan.batches_per_epoch, data.notes)
        weights = read_weights(model.network)
        bundle = Bundle(task.name, dump(config), data.vocabularies, weights, card, files)
        save_bundle(bundle, self.folder / name)


def _announce(task: Task, config: Any) -> FileLock:
    """Lock the run's folder, open the log in it, write the settings there, and seed the first weights."""
    lock = make_folder(Path(config.output_dir))
    logger.info("configuration:\n%s", dump(config).rstrip())
    paddle.seed(config.seed)
    return lock


def _build_network(task: Task, config: Any, data: TrainingData) -> nn.Layer:
    sizes = {name: len(vocabulary) for name, vocabulary in data.vocabularies.items()}
    positions = 0
    if paddle.get_device() == "cpu":
        lengths = np.asarray(data.train.lengths)
        positions = int(min(config.data.batch_size, len(lengths)) * lengths.mean())
    if too_large := memory_problem(config.model, sum(sizes.values()), 4, positions):
        raise UserError(f"model: {too_large}")
    return task.build_network(config, sizes)


def _weights_of_start(task: Task, network: nn.Layer, start: Bundle, where: str) -> Mapping[str, np.ndarray]:
    """Return the weights that a network takes from the bundle `training.start_from`, grown to its size."""
    grown = grow_weights(read_weights(network), start.weights)
    untrained = sorted(grown.keys() - start.weights.keys())
    if untrained:
        logger.info("learned anew, as %s has none: %s", where, ", ".join(untrained))
    return grown


def _section_on_start(
    task: Task, config: Any, start: Bundle, data: TrainingData, fitted: Mapping[str, np.ndarray]
) -> str:
    """Return what the card is to say of the weights that a run begins with, and tell what is not kept of them.

    Args:
        fitted: weights that are not trained, see `Task.fitted_weights`.
    """
    named = config.training.start_from
    kept = {*task.bundle_files(config, data.vocabularies, data.files), *TRAINING_FILES}
    if replaced := ", ".join(sorted(start.weights.keys() & fitted.keys())):
        replaced = f"fitted to the new data, in place of those of {named}: {replaced}"
        logger.warning("%s", replaced)
    lost = ", ".join(sorted(start.extra.keys() - kept))
    if lost:
        lost = f"not kept of {named}, as they were made for its weights or of its data: {lost}"
        logger.warning("%s; docs/your_data.md tells how to make them anew", lost)
    told = re.findall(r"^## (?:Data|Data and licence|Began with)\n.*?(?=^## |\Z)", start.card, re.M | re.S)
    quoted = "".join(f"> {line}\n" for line in "".join(told).strip().replace("## ", "").splitlines())
    said = f"of which their card says:\n\n{quoted}" if quoted else "which have no card.\n"
    return f"## Began with\nThe weights `{named}`, {said}\n{replaced}\n\n{lost}".rstrip()


def _dev_indices(config: Any, data: TrainingData) -> list[list[int]] | None:
    """Return this process's share of the dev examples as batches of indices; no example is in two shares.

    Raises:
        UserError: there are fewer examples than processes.
    """
    dev = data.dev
    if dev is None:
        return None
    if len(dev.dataset) < num_ranks():
        raise UserError(
            f"data.dev: {len(dev.dataset)} examples are too few for {num_ranks()} processes; start fewer"
        )
    share = range(rank(), len(dev.lengths), num_ranks())
    batches = LengthBucketSampler(dev.lengths[share], config.data.batch_size, shuffle=False)
    return [[share[index] for index in batch] for batch in batches]
