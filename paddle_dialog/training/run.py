"""One training run, from the config to the bundles, around ``paddle.Model.fit``."""

from __future__ import annotations

import logging
import math
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import paddle
from paddle import io

from paddle_dialog.bundle import MANIFEST, Bundle, load_bundle, read_weights, save_bundle, set_weights
from paddle_dialog.config import dump
from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.errors import UserError
from paddle_dialog.metrics.perplexity import token_perplexity_metric
from paddle_dialog.task import EncodedData, Task, TrainingData
from paddle_dialog.training.batches import TrainingBatches
from paddle_dialog.training.callbacks import Counter, DevEvaluation, Reporter, RunContext, Saver
from paddle_dialog.training.checkpoint import (
    CHECKPOINTS,
    find_checkpoint,
    load_progress,
    pack_training_state,
    restore_training_state,
)
from paddle_dialog.training.events import Sink
from paddle_dialog.training.model_card import model_card
from paddle_dialog.training.optimizer import build_optimizer
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.text_log import TextLog, configure_logging
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
        checkpoint = self._find_start(resume, overwrite)
        self._make_folder()
        logger.info("configuration:\n%s", dump(config).rstrip())

        paddle.seed(config.seed)
        start = checkpoint or self._start_from()
        vocabularies = None if start is None else start[1].vocabularies
        self.data: TrainingData = task.prepare_data(config, vocabularies)
        sizes = {name: len(vocabulary) for name, vocabulary in self.data.vocabularies.items()}
        self.network = task.build_network(config, sizes)
        task.initialise(config, self.network, self.data)
        if start is not None:
            set_weights(self.network, start[1].weights, start[0])
        for note in self.data.notes:
            logger.info("%s", note)
        self.criterion = task.build_criterion(config)
        self.progress = Progress() if checkpoint is None else load_progress(checkpoint[1], checkpoint[0])
        self.batches = self._training_batches()
        self.total_steps = self._total_steps()
        self.optimizer, self.clip = build_optimizer(
            config.training, self.network, self.total_steps, config.model.width
        )
        if checkpoint is not None:
            restore_training_state(checkpoint[1], checkpoint[0], self.optimizer, self.network)
            logger.info("resumed from %s at step %d", checkpoint[0], self.progress.step)
        elif resume is not None:
            logger.info("%s: nothing to resume, so the run begins", self.folder)
        else:
            self._remove_earlier_run()
        self._write_config()
        count = sum(math.prod(parameter.shape) for parameter in self.network.parameters())
        logger.info("%s parameters, %d steps in all", f"{count:,}", self.total_steps)

    def train(self) -> Progress:
        """Trains to the end, or until Ctrl-C or SIGTERM asks to stop after the current step.

        Returns:
            Where the run stands; ``interrupted`` tells whether it was stopped from outside.
        """
        if self._is_complete():
            logger.info("the run has already finished, at step %d", self.progress.step)
        else:
            self._fit()
        self.progress.finished = self._is_complete()
        self._save("last", resumable=True)
        if self.data.dev is None:
            self._save("best")
        return self.progress

    def _fit(self) -> None:
        metric = token_perplexity_metric(self.criterion)
        model = paddle.Model(self.network)
        model.prepare(self.optimizer, self.criterion, metric)
        sinks: list[Sink] = [TextLog(), VisualDLSink(self.folder / "vdl", self.config, self.progress.step)]
        context = RunContext(
            self.config.training,
            self.config.seed,
            self.progress,
            self.batches,
            self.total_steps,
            metric,
            self.clip,
            sinks,
        )
        with self._stop_signals():
            model.fit(
                self.batches,
                epochs=self.config.training.epochs - self.progress.epoch,
                verbose=0,
                callbacks=self._callbacks(context),
            )
        for sink in sinks:
            sink.close()
        if self.interrupted:
            logger.info("stopped at step %d; --resume auto continues", self.progress.step)

    def _is_complete(self) -> bool:
        """Whether all steps are done, or early stopping has ended the run."""
        patience = self.config.training.patience
        stopped = patience is not None and self.progress.evaluations_without_gain >= patience
        return stopped or self.progress.step >= self.total_steps

    def _callbacks(self, context: RunContext) -> list[paddle.callbacks.Callback]:
        """In the order in which they act on a step."""
        reporter = Reporter(context)
        callbacks = [Counter(context), paddle.callbacks.LRScheduler(by_step=True), reporter]
        if self.data.dev is not None:
            count = self.config.training.show_examples
            callbacks.append(
                DevEvaluation(
                    context,
                    self._dev_loader(self.data.dev),
                    lambda: self.task.display(self.config, self.network, self.data, count),
                    lambda: self._save("best"),
                    reporter,
                )
            )
        return [*callbacks, Saver(context, lambda: self._save("last", resumable=True))]

    def _save(self, name: str, resumable: bool = False) -> None:
        extra = self.task.bundle_files(self.data.vocabularies)
        if resumable:
            extra |= pack_training_state(self.progress, self.optimizer, self.network)
        bundle = Bundle(
            self.task.name,
            dump(self.config),
            self.data.vocabularies,
            read_weights(self.network),
            model_card(self.task.name, self.config, self.progress, self.data.notes),
            extra,
        )
        save_bundle(bundle, self.folder / name)

    def _find_start(self, resume: str | None, overwrite: bool) -> tuple[Path, Bundle] | None:
        if resume is None:
            if not overwrite and self._earlier_run():
                raise UserError(
                    f"{self.folder}: already holds a run; continue it with --resume auto, begin anew with "
                    "--overwrite, or choose another folder with -o output_dir=…"
                )
            return None
        folder = self.folder if resume == "auto" else Path(resume)
        if resume != "auto" and not folder.is_dir():
            raise UserError(f"--resume {resume}: no such folder; name a run's folder or its 'last' bundle")
        if self.folder.resolve() not in (folder.resolve(), folder.resolve().parent) and self._earlier_run():
            raise UserError(
                f"{self.folder}: already holds another run than {folder}; choose a new folder with "
                "-o output_dir=…"
            )
        if (folder / MANIFEST).exists() and folder.name != CHECKPOINTS[0]:
            bundle = load_bundle(folder)
            load_progress(bundle, folder)
            found: tuple[Path, Bundle] | None = (folder, bundle)
        else:
            found = find_checkpoint(folder.parent if (folder / MANIFEST).exists() else folder)
        if found is None and resume != "auto":
            raise UserError(f"--resume {resume}: holds no checkpoint")
        if found is not None and found[1].task != self.task.name:
            raise UserError(
                f"{found[0]}: is of the task '{found[1].task}', and the config's is '{self.task.name}'"
            )
        return found

    def _start_from(self) -> tuple[Path, Bundle] | None:
        """The model that ``training.start_from`` names."""
        if self.config.training.start_from is None:
            return None
        folder = Path(self.config.training.start_from)
        bundle = load_bundle(folder)
        if bundle.task != self.task.name:
            raise UserError(
                f"training.start_from: {folder} is of the task '{bundle.task}', and the config's is "
                f"'{self.task.name}'"
            )
        logger.info("starting from the weights of %s", folder)
        return folder, bundle

    def _earlier_run(self) -> list[Path]:
        """The models that a run has left in the folder."""
        names = (*CHECKPOINTS, "best", "best.partial", "best.previous")
        return [self.folder / name for name in names if (self.folder / name).exists()]

    def _remove_earlier_run(self) -> None:
        """Else ``--resume auto`` could continue the run that this one is to replace, and its curves would stay."""
        for part in (*self._earlier_run(), self.folder / "vdl"):
            if not part.exists():
                continue
            logger.info("removing %s of an earlier run", part)
            shutil.rmtree(part, ignore_errors=True)

    def _make_folder(self) -> None:
        """Creates the folder and opens the log in it, before anything that takes time."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            configure_logging(str(self.folder / "train.log"))
        except OSError as error:
            raise UserError(
                f"output_dir: {self.folder}: cannot be written to ({error.strerror}); choose another folder"
            ) from error

    def _write_config(self) -> None:
        """Saves the merged configuration, once nothing can be wrong with it any more."""
        try:
            (self.folder / "config.yaml").write_text(dump(self.config), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{self.folder}/config.yaml: cannot be written ({error.strerror})") from error

    def _training_batches(self) -> TrainingBatches:
        train, data = self.data.train, self.config.data
        sampler = LengthBucketSampler(
            train.lengths, data.batch_size, seed=self.config.seed, bucket_batches=data.bucket_batches
        )
        return TrainingBatches(train.dataset, sampler, self.data.collate, self.progress, data.workers)

    def _dev_loader(self, dev: EncodedData) -> io.DataLoader:
        sampler = LengthBucketSampler(dev.lengths, self.config.data.batch_size, shuffle=False)
        return io.DataLoader(dev.dataset, batch_sampler=sampler, collate_fn=self.data.collate)

    def _total_steps(self) -> int:
        training = self.config.training
        whole = training.epochs * len(self.batches)
        return whole if training.max_steps is None else min(whole, training.max_steps)

    @contextmanager
    def _stop_signals(self) -> Iterator[None]:
        """Turns the first Ctrl-C or SIGTERM into an orderly stop after the current step."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True
            self.batches.stop = True
            # Not by the log: the signal may have come while that writes.
            os.write(2, b"stopping after this step; a second signal stops at once\n")

        previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
