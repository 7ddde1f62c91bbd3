"""A task that is not sequence to sequence goes through the same run: a classifier."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from paddle import nn

from paddle_dialog.bundle.folder import TrainedModel, load_bundle
from paddle_dialog.config.schema import DataConfig, ExperimentConfig, TrainingConfig
from paddle_dialog.data.batching import EncodedData, TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.metrics import Accuracy, Perplexity
from paddle_dialog.task import Task
from paddle_dialog.training.progress import Stop
from paddle_dialog.training.run import Run


class Points(NamedTuple):
    """A batch of the classifier."""

    input: np.ndarray
    label: np.ndarray


def collate(examples: list[Any]) -> Points:
    return Points(*(np.stack(column) for column in zip(*examples, strict=True)))


class Classifier(Task):
    """Whether the numbers of a vector add up to more than nothing. It has no vocabulary and answers nothing."""

    name = "classifier"
    config_class = ExperimentConfig
    objective = Accuracy()

    def prepare_data(self, config: Any, vocabularies: Any) -> TrainingData:
        points = np.random.default_rng(1).normal(size=(90, 4)).astype("float32")
        classes = (points.sum(-1) > 0).astype("int64")
        examples: Any = list(zip(points, classes, strict=True))
        train, dev = (
            EncodedData(part, np.ones(len(part), "int64")) for part in (examples[:60], examples[60:])
        )
        return TrainingData(train, dev, {}, collate)

    def build_network(self, config: Any, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))

    def build_criterion(self, config: Any) -> nn.Layer:
        return nn.CrossEntropyLoss()


def recipe(task: Task, folder: Path, **training: Any) -> ExperimentConfig:
    settings = TrainingConfig(**{"learning_rate": 0.02, "log_every": 3, "save_every": 4, **training})
    return ExperimentConfig(
        task.name, output_dir=str(folder), data=DataConfig(batch_size=10), training=settings
    )


def test_a_classifier_is_trained_for_its_accuracy(tmp_path):
    config = recipe(Classifier(), tmp_path / "run", epochs=20, patience=15)
    run = Run.begin(Classifier(), config)
    progress = run.train()
    accuracies = [accuracy for _, accuracy in progress.curve]
    assert progress.best_figure == max(accuracies) > 0.8 > accuracies[0]
    assert progress.best_step == progress.curve[accuracies.index(max(accuracies))][0]
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert re.search(r"step 6/\d+ epoch 1\.00 loss \S+ accuracy 0\.\d{4} lr .* \d+ examples/s ", log)
    assert f"dev accuracy {max(accuracies):.4f} (best so far)" in log and "perplexity" not in log
    best = load_bundle(tmp_path / "run" / "best")
    assert "| step | dev accuracy |" in best.card and best.vocabularies == {}
    with pytest.raises(UserError, match="a model of the task 'classifier' answers nothing by itself"):
        run.task.predictor(config, TrainedModel({}, lambda: run.network))


def test_early_stopping_waits_for_a_higher_accuracy(tmp_path):
    run = Run.begin(Classifier(), recipe(Classifier(), tmp_path, epochs=200, patience=2))
    progress = run.train()
    assert run.stop is Stop.EARLY and progress.step < 1200 and progress.finished
    accuracies = [accuracy for _, accuracy in progress.curve]
    assert max(accuracies) == accuracies[-3] == progress.best_figure
    log, ended = tmp_path / "train.log", f"ended early, at step {progress.step}: its dev accuracy was best at"
    assert log.read_text(encoding="utf-8").count(ended) == 1
    Run.resume(Classifier(), recipe(Classifier(), tmp_path, epochs=200, patience=2)).train()
    assert log.read_text(encoding="utf-8").count(ended) == 2
    assert "already finished" not in log.read_text(encoding="utf-8")


def test_a_run_is_not_resumed_for_another_objective(tmp_path):
    config = recipe(Classifier(), tmp_path, max_steps=1)
    Run.begin(Classifier(), config).train()

    class Changed(Classifier):
        objective = Perplexity()

    with pytest.raises(UserError, match=r"by their accuracy, .* by their perplexity; begin the run anew"):
        Run.resume(Changed(), dataclasses.replace(config))
    assert json.loads((tmp_path / "last" / "progress.json").read_text())["objective"] == "accuracy"
