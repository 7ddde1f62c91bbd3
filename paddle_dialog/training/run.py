"""One training run, from the config to the bundles, around `paddle.Model.fit`."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddlenlp.metrics  # noqa: F401  (loading it takes SIGTERM for itself: before `orderly_stop` does)
from paddle import nn

from paddle_dialog.bundle.folder import Bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights, set_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.data.training_data import TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.mkl import describe_path
from paddle_dialog.models.older_names import with_present_names
from paddle_dialog.task import Task
from paddle_dialog.training.batches import TrainingBatches
from paddle_dialog.training.best_models import BestModels
from paddle_dialog.training.checkpoint import load_progress, pack_training_state, restore_training_state
from paddle_dialog.training.conductor import Conductor
from paddle_dialog.training.distributed import is_main, meet, num_ranks, rank, require_agreement
from paddle_dialog.training.events import Sink
from paddle_dialog.training.model_card import model_card
from paddle_dialog.training.observer import Observer
from paddle_dialog.training.plan import Plan, Stop
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.run_folder import (
    changed_settings,
    data_and_start,
    find_start,
    make_folder,
    refuse_earlier_run,
    remove_earlier_run,
    write_config,
)
from paddle_dialog.training.signals import orderly_stop
from paddle_dialog.training.text_log import TextLog, close_log_file
from paddle_dialog.training.training_model import TrainingModel
from paddle_dialog.training.visualdl_sink import VisualDLSink

logger = logging.getLogger("paddle_dialog")


class Run:
    """A training run in its folder, made by `begin` or `resume`.

    Args:
        task: the task.
        config: its configuration.
        data: the encoded examples.
        network: with the weights that training starts from.
        progress: of the run.

    Attributes:
        stop: why the run stopped; None before.
    """

    def __init__(
        self, task: Task, config: Any, data: TrainingData, network: nn.Layer, progress: Progress
    ) -> None:
        self.task = task
        self.config = config
        self.folder = Path(config.output_dir)
        self.data = data
        self.progress = progress
        self.stop: Stop | None = None
        require_agreement(progress.step, "the step they resume from")
        progress.set_objective(task.objective.name)
        progress.set_layout(num_ranks(), config.data.batch_size, config.data.streaming)
        self.batches = TrainingBatches(task, config, data, progress)
        self.plan = Plan.going_on(config.training, len(self.batches), progress)
        meet()  # the processes exchange their weights
        self.model = TrainingModel(task, config, network, self.plan.total_steps, progress)

    @classmethod
    def begin(cls, task: Task, config: Any, overwrite: bool = False) -> Run:
        """Begin a new run.

        Args:
            task: the task.
            config: its configuration.
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
            task: the task.
            config: its configuration.
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
        changes = changed_settings(where, bundle, config)
        _announce(task, config)
        for change in changes:
            logger.warning("%s", change)
        data = task.prepare_data_like(config, bundle)
        run = cls(task, config, data, _build_network(task, config, data), load_progress(bundle, where))
        model = run.model
        restore_training_state(bundle, where, model.optimizer, model.network, model.average)
        logger.info("resumed from %s at step %d", where, run.progress.step)
        return run._ready()

    @classmethod
    def _from_the_start(cls, task: Task, config: Any) -> Run:
        """Make a run at step 0, which has changed nothing in its folder but the log."""
        _announce(task, config)
        data, start = data_and_start(task, config)
        network = _build_network(task, config, data)
        fitted = task.fitted_weights(config, data)
        if start is not None:
            named = config.training.start_from
            given = _weights_of_start(task, network, start, named)
            set_weights(network, {**given, **fitted}, named)
        elif fitted:
            set_weights(network, {**read_weights(network), **fitted}, "fitted weights")
        return cls(task, config, data, network, Progress())

    def _ready(self) -> Run:
        for note in self.data.notes:
            logger.info("%s", note)
        if is_main() and not self._is_over:
            write_config(self.folder, dump(self.config))
        count = sum(math.prod(parameter.shape) for parameter in self.model.network.parameters())
        logger.info("%s parameters, %d steps in all", f"{count:,}", self.plan.total_steps)
        train, dev = self.config.data.train, self.config.data.dev
        if str(dev).startswith("sample") and not str(train).startswith("sample"):
            logger.warning(
                "data.dev is the sample that ships, and data.train is not; name a dev set of your own, or null"
            )
        warm_up = self.config.training.warmup_steps
        if warm_up >= self.plan.total_steps:
            logger.warning(
                "training.warmup_steps is %d and the run has %d steps: the rate never reaches training.learning_rate",
                warm_up,
                self.plan.total_steps,
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

    def _fit(self) -> None:
        meet()
        training = self.config.training
        if training.amp != "none" and not self.model.mixed:
            logger.info("training.amp: has no effect on the CPU, where Paddle computes in float32")
        observer = Observer(
            self.plan,
            self.progress,
            self.batches,
            self.model,
            self._sinks() if is_main() else [],
            self._dev_batches(),
            BestModels(self.folder, self.progress, self.task.objective, training.keep_best, self._save),
            lambda: self.task.display(self.config, self.model.network, self.data, training.show_examples),
        )
        with orderly_stop() as asked:
            conductor = Conductor(
                self.plan, self.progress, self.config.seed, asked, observer, self._save_checkpoint
            )
            epochs = training.epochs - self.progress.epoch
            self.model.fit(self.batches, epochs=epochs, verbose=0, callbacks=[conductor])
        self.model.skips.settle()
        self.stop = conductor.stop
        if self.stop is Stop.ASKED:
            none = "" if self.progress.best_step or self.data.dev is None else ", without a 'best' yet"
            logger.info("stopped at step %d%s; --resume auto continues", self.progress.step, none)

    def _save_results(self) -> None:
        self.progress.finished = self.plan.completion(self.progress) is not None
        self._save_checkpoint()
        if self.data.dev is None:
            average = self.model.average
            with nullcontext() if average is None else average.applied():
                self._save("best")
        elif self.progress.finished and self.progress.best_step == 0:
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
        if resumable:
            if model.loss_scale is not None:
                model.loss_scale.store(progress)
            files |= pack_training_state(progress, model.optimizer, model.network, model.average)
        card = model_card(task, config, progress, self.plan.batches_per_epoch, data.notes)
        weights = read_weights(model.network)
        bundle = Bundle(task.name, dump(config), data.vocabularies, weights, card, files)
        save_bundle(bundle, self.folder / name)

    def _sinks(self) -> list[Sink]:
        objective, unit = self.task.objective, self.task.unit
        curves = VisualDLSink(self.folder / "vdl", self.config, objective, unit, self.progress.step)
        return [TextLog(objective, unit), curves]

    def _dev_batches(self) -> Callable[[], Iterator[Any]] | None:
        """Return this process's share of the dev examples as batches of arrays."""
        dev = self.data.dev
        if dev is None:
            return None
        if len(dev.dataset) < num_ranks():
            raise UserError(
                f"data.dev: {len(dev.dataset)} examples are too few for {num_ranks()} processes; start fewer"
            )
        own = self.task.dev_batches(self.config, dev, num_ranks(), rank())
        dataset, collate = dev.dataset, self.data.collate
        return lambda: (collate([dataset[index] for index in indices]) for indices in own)


def _announce(task: Task, config: Any) -> None:
    """Open the log in the run's folder, write the settings there, and seed the first weights."""
    if config.data.streaming and not task.can_stream:
        raise UserError(f"data.streaming: the task '{task.name}' cannot stream its data; set it to false")
    make_folder(Path(config.output_dir))
    logger.info("configuration:\n%s", dump(config).rstrip())
    path = describe_path()
    if path is not None and paddle.get_device() == "cpu":
        logger.info("%s", path)
    paddle.seed(config.seed)


def _build_network(task: Task, config: Any, data: TrainingData) -> nn.Layer:
    sizes = {name: len(vocabulary) for name, vocabulary in data.vocabularies.items()}
    network = task.build_network(config, sizes)
    task.initialise(config, network, data)
    return network


def _weights_of_start(task: Task, network: nn.Layer, start: Bundle, where: str) -> Mapping[str, np.ndarray]:
    """Return the weights that a network takes from the bundle `training.start_from`."""
    given = with_present_names(start.weights, getattr(network, "older_names", {}))
    taken = task.starting_weights(read_weights(network), given)
    anew = sorted(taken.keys() - given.keys())
    if anew:
        logger.info("learned anew, as %s has none: %s", where, ", ".join(anew))
    return taken
