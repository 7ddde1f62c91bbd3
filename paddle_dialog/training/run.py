"""One training run, from the config to the bundles, around ``paddle.Model.fit``."""

from __future__ import annotations

import logging
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import paddle
from paddle import io, nn

from paddle_dialog.bundle.folder import Bundle, read_weights, save_bundle, set_weights
from paddle_dialog.config import dump
from paddle_dialog.data.streaming import StreamedData
from paddle_dialog.errors import UserError
from paddle_dialog.mkl import describe_path
from paddle_dialog.task import EncodedData, Task, TrainingData
from paddle_dialog.training.average import WeightAverage
from paddle_dialog.training.batches import TrainingBatches
from paddle_dialog.training.best_models import BestModels
from paddle_dialog.training.callbacks import Counter, DevEvaluation, Reporter, RunContext, Saver, Schedule
from paddle_dialog.training.checkpoint import load_progress, pack_training_state, restore_training_state
from paddle_dialog.training.distributed import is_main, meet, num_ranks, rank, require_agreement
from paddle_dialog.training.events import Sink
from paddle_dialog.training.loss_scale import LossScale
from paddle_dialog.training.model_card import model_card
from paddle_dialog.training.optimizer import build_optimizer
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.run_folder import (
    find_start,
    load_start,
    make_folder,
    remove_earlier_run,
    write_config,
)
from paddle_dialog.training.signals import orderly_stop
from paddle_dialog.training.text_log import TextLog, close_log_file
from paddle_dialog.training.training_model import TrainingModel
from paddle_dialog.training.visualdl_sink import VisualDLSink

logger = logging.getLogger("paddle_dialog")


class Run:
    """A training run in its folder.

    Args:
        task: the task.
        config: its configuration.
        resume: a checkpoint folder, ``auto`` for the newest one of the run's folder, or None to begin.
        overwrite: begin anew although the folder holds a run.
    """

    def __init__(self, task: Task, config: Any, resume: str | None = None, overwrite: bool = False) -> None:
        self.task = task
        self.config = config
        self.folder = Path(config.output_dir)
        self.interrupted = False
        if config.data.streaming and not task.can_stream:
            raise UserError(f"data.streaming: the task '{task.name}' cannot stream its data; set it to false")
        checkpoint = find_start(self.folder, task.name, resume, overwrite)
        make_folder(self.folder)
        logger.info("configuration:\n%s", dump(config).rstrip())
        path = describe_path()
        if path is not None and paddle.get_device() == "cpu":
            logger.info("%s", path)

        paddle.seed(config.seed)
        start = checkpoint
        if start is None and config.training.start_from is not None:
            start = load_start(Path(config.training.start_from), task.starts_from or task.name)
        vocabularies = None if start is None else start[1].vocabularies
        self.data: TrainingData = task.prepare_data(config, vocabularies)
        self.network = self._build_network(start, begins=checkpoint is None)
        for note in self.data.notes:
            logger.info("%s", note)
        self.criterion = task.build_criterion(config)
        self.progress = Progress() if checkpoint is None else load_progress(checkpoint[1], checkpoint[0])
        require_agreement(self.progress.step, "the step they resume from")
        self.progress.set_objective(task.objective.name)
        self.progress.set_layout(num_ranks(), config.data.batch_size, config.data.streaming)
        self.batches = self._training_batches()
        self.total_steps = self._total_steps()
        training = config.training
        scaled = training.amp != "none" and training.amp_dtype == "float16"
        self.optimizer, self.clip = build_optimizer(
            training,
            self.network,
            self.total_steps,
            config.model.width,
            LossScale(self.progress) if scaled else None,
        )
        decay = training.ema_decay
        self.average = None if decay is None else WeightAverage(self.network, decay)
        if checkpoint is not None:
            restore_training_state(checkpoint[1], checkpoint[0], self.optimizer, self.network, self.average)
            logger.info("resumed from %s at step %d", checkpoint[0], self.progress.step)
        elif resume is not None:
            logger.info("%s: nothing to resume, so the run begins", self.folder)
        elif is_main():
            remove_earlier_run(self.folder)
        if is_main():
            write_config(self.folder, dump(config))
        count = sum(math.prod(parameter.shape) for parameter in self.network.parameters())
        logger.info("%s parameters, %d steps in all", f"{count:,}", self.total_steps)

    def train(self) -> Progress:
        """Trains to the end, or until Ctrl-C or SIGTERM asks to stop after the current step.

        Returns:
            Where the run stands; ``interrupted`` tells whether it was stopped from outside.
        """
        try:
            return self._train()
        finally:
            close_log_file()

    def _train(self) -> Progress:
        if self._is_complete():
            logger.info("the run has already finished, at step %d", self.progress.step)
        else:
            self._fit()
        self.progress.finished = self._is_complete()
        self._save("last", resumable=True)
        if self.data.dev is None:
            with nullcontext() if self.average is None else self.average.applied():
                self._save("best")
        elif self.progress.finished and self.progress.best_step == 0:
            logger.warning(
                "%s: there is no 'best', as no dev %s was finite; the weights of step %d are in 'last'",
                self.folder,
                self.task.objective.name,
                self.progress.step,
            )
        return self.progress

    def _fit(self) -> None:
        meet()
        training, objective = self.config.training, self.task.objective
        model = TrainingModel(
            self.network,
            self.criterion,
            objective,
            training,
            self.batches,
            self.progress,
            self.clip,
            self.average,
        )
        if training.amp != "none" and not model.mixed:
            logger.info("training.amp: has no effect on the CPU, where Paddle computes in float32")
        model.prepare(self.optimizer)
        sinks: list[Sink] = []
        if is_main():
            unit, step = self.task.unit, self.progress.step
            sinks = [
                TextLog(objective, unit),
                VisualDLSink(self.folder / "vdl", self.config, objective, unit, step),
            ]
        context = RunContext(
            self.config.training,
            self.config.seed,
            self.progress,
            self.batches,
            self.total_steps,
            self.clip,
            sinks,
            self.average,
        )
        with orderly_stop(self._request_stop):
            model.fit(
                self.batches,
                epochs=self.config.training.epochs - self.progress.epoch,
                verbose=0,
                callbacks=self._callbacks(context),
            )
        model.skips.settle()
        self.interrupted = self.batches.interrupted
        for sink in sinks:
            sink.close()
        if self.interrupted:
            logger.info("stopped at step %d; --resume auto continues", self.progress.step)

    def _request_stop(self) -> None:
        self.batches.stop_requested = True

    def _is_complete(self) -> bool:
        """Whether all steps are done, or early stopping has ended the run."""
        patience = self.config.training.patience
        stopped = patience is not None and self.progress.evaluations_without_gain >= patience
        return stopped or self.progress.step >= self.total_steps

    def _callbacks(self, context: RunContext) -> list[paddle.callbacks.Callback]:
        """In the order in which they act on a step."""
        reporter = Reporter(context)
        callbacks = [Counter(context), Schedule(context), reporter]
        if self.data.dev is not None:
            count = self.config.training.show_examples
            best = BestModels(
                self.folder, self.progress, self.task.objective, self.config.training.keep_best, self._save
            )
            callbacks.append(
                DevEvaluation(
                    context,
                    self._dev_loader(self.data.dev),
                    lambda: self.task.display(self.config, self.network, self.data, count),
                    best.consider,
                    reporter,
                )
            )
        return [*callbacks, Saver(context, lambda: self._save("last", resumable=True))]

    def _save(self, name: str, resumable: bool = False) -> None:
        if not is_main():
            return
        extra = self.task.bundle_files(self.config, self.data.vocabularies, self.data.files)
        if resumable:
            if self.clip.loss_scale is not None:
                self.clip.loss_scale.store(self.progress)
            extra |= pack_training_state(self.progress, self.optimizer, self.network, self.average)
        bundle = Bundle(
            self.task.name,
            dump(self.config),
            self.data.vocabularies,
            read_weights(self.network),
            model_card(self.task, self.config, self.progress, len(self.batches), self.data.notes),
            extra,
        )
        save_bundle(bundle, self.folder / name)

    def _build_network(self, start: tuple[Path, Bundle] | None, begins: bool) -> nn.Layer:
        """The network with the weights it goes on from; those that a task fits are fitted where a run begins."""
        sizes = {name: len(vocabulary) for name, vocabulary in self.data.vocabularies.items()}
        network = self.task.build_network(self.config, sizes)
        self.task.initialise(self.config, network, self.data)
        fitted = self.task.fitted_weights(self.config, self.data) if begins else {}
        if start is not None:
            taken = start[1].weights
            if begins:
                taken = self.task.starting_weights(read_weights(network), taken)
                anew = sorted(taken.keys() - start[1].weights.keys())
                if anew:
                    logger.info("learned anew, as %s has none: %s", start[0], ", ".join(anew))
            set_weights(network, {**taken, **fitted}, start[0])
        elif fitted:
            set_weights(network, {**read_weights(network), **fitted}, "fitted weights")
        return network

    def _training_batches(self) -> TrainingBatches:
        train = self.data.train
        return TrainingBatches(
            None if isinstance(train, StreamedData) else train.dataset,
            self.task.training_batches(self.config, train, num_ranks(), rank()),
            self.data.collate,
            self.task.count_units,
            self.progress,
            self.config.data.workers,
            self.config.training.accumulate,
        )

    def _dev_loader(self, dev: EncodedData) -> io.DataLoader:
        """The share of this process in the dev examples."""
        if len(dev.dataset) < num_ranks():
            raise UserError(
                f"data.dev: {len(dev.dataset)} examples are too few for {num_ranks()} processes; start fewer"
            )
        own = self.task.dev_batches(self.config, dev, num_ranks(), rank())
        return io.DataLoader(dev.dataset, batch_sampler=own, collate_fn=self.data.collate)

    def _total_steps(self) -> int:
        training = self.config.training
        whole = training.epochs * math.ceil(len(self.batches) / training.accumulate)
        return whole if training.max_steps is None else min(whole, training.max_steps)
