"""A training run, of a task that is not sequence to sequence: its order, its stops, its batches, its objective."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import paddle
import pytest
from paddle import io, nn

from paddle_dialog.bundle.folder import TrainedModel, load_bundle
from paddle_dialog.config.schema import DataConfig, ExperimentConfig, TrainingConfig
from paddle_dialog.data.batching import EncodedData, LengthBucketSampler, TrainingData, epoch_steps
from paddle_dialog.errors import UserError
from paddle_dialog.metrics import Accuracy, Perplexity
from paddle_dialog.task import Task
from paddle_dialog.training.progress import Stop
from paddle_dialog.training.run import Run


class Points(NamedTuple):
    """A batch of the classifier."""

    input: np.ndarray
    label: np.ndarray


def collate(examples):
    return Points(*(np.stack(column) for column in zip(*examples, strict=True)))


class Classifier(Task):
    """Whether the numbers of a vector add up to more than nothing. It has no vocabulary and answers nothing."""

    name = "classifier"
    config_class = ExperimentConfig
    objective = Accuracy()

    def prepare_data(self, config, vocabularies):
        points = np.random.default_rng(1).normal(size=(90, 4)).astype("float32")
        classes = (points.sum(-1) > 0).astype("int64")
        examples: Any = list(zip(points, classes, strict=True))
        parts = examples[:60], examples[60:]
        train, dev = (EncodedData(part, np.ones(len(part), "int64")) for part in parts)
        return TrainingData(train, dev, {}, collate)

    def build_network(self, config, vocabulary_sizes):
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))

    def build_criterion(self, config):
        return nn.CrossEntropyLoss()


def recipe(task, folder, **training):
    settings = TrainingConfig(**{"learning_rate": 0.02, "log_every": 3, "save_every": 4, **training})
    return ExperimentConfig(
        task.name, output_dir=str(folder), data=DataConfig(batch_size=10), training=settings
    )


BATCHES = 6  # of ten examples


def follow(folder, asked=lambda: False, resume=False, **settings):
    """Train; return what happened in order, the run, and the first random number of each step."""
    task = Classifier()
    config = recipe(task, folder, **{"eval_every": 100, "save_every": 100, "log_every": 100, **settings})
    run = Run.resume(task, config) if resume else Run.begin(task, config)
    story: list[str] = []
    drawn: list[float] = []

    changed: Any = run
    step, seed, save = run.step, run._seed_dropout, run._save
    changed.step = lambda batches: (story.append(f"step{len(batches)}"), step(batches))
    changed._seed_dropout = lambda: (seed(), drawn.append(float(paddle.rand([]))))

    changed._report_progress = lambda: story.append(f"report{run.progress.step}")
    changed._evaluate = lambda: story.append(f"evaluate{run.progress.step}")
    changed._save = lambda name: (story.append(f"save{run.progress.step}"), save(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paddle_dialog.training.run.orderly_stop", lambda: nullcontext(asked))
        run.train()
    return " ".join(story), run, drawn


@pytest.mark.parametrize(
    ("settings", "story", "place"),
    [
        # Two epochs of six batches by fours, so two steps each; the last save is that of the end.
        (
            {"epochs": 2, "accumulate": 4, "log_every": 2, "eval_every": 3, "save_every": 2},
            "step4 step2 report2 save2 step4 evaluate3 step2 report4 evaluate4 save4 save4",
            (2, 0, 4),
        ),
        # An epoch ends with an evaluation where no number of steps is set.
        (
            {"epochs": 2, "eval_every": 0, "save_every": 6},
            "step1 " * 6 + "evaluate6 save6 " + "step1 " * 6 + "report12 evaluate12 save12 save12",
            (2, 0, 12),
        ),
        # The run ends inside an epoch.
        (
            {"epochs": 2, "max_steps": 3, "save_every": 3},
            "step1 step1 step1 report3 evaluate3 save3 save3",
            (0, 3, 3),
        ),
    ],
)
def test_all_happens_in_its_order(tmp_path, settings, story, place):
    told, run, drawn = follow(tmp_path, **settings)
    assert told == story and run.stop is Stop.FINISHED
    assert (run.progress.epoch, run.progress.batch, run.progress.step) == place
    assert len(set(drawn)) == run.progress.step


def test_a_run_that_is_asked_stops_after_the_step_and_goes_on_where_it_stood(tmp_path):
    whole = follow(tmp_path / "whole", epochs=2, accumulate=2)[2]
    asks = itertools.count(1)
    story, run, first = follow(tmp_path / "parts", lambda: next(asks) >= 4, epochs=2, accumulate=2)
    assert story.split()[-3:] == ["step2", "report4", "save4"]
    place = (run.progress.epoch, run.progress.batch, run.progress.step)
    assert run.stop is Stop.REQUESTED and place == (1, 2, 4)
    _, run, second = follow(tmp_path / "parts", resume=True, epochs=2, accumulate=2)
    assert run.stop is Stop.FINISHED and first + second == whole
    asks = itertools.count(1)  # asked after its last step, it has finished
    _, run, _ = follow(tmp_path / "last", lambda: next(asks) >= BATCHES, epochs=1)
    assert run.stop is Stop.FINISHED


def test_each_process_draws_for_itself(tmp_path, monkeypatch):
    alone = follow(tmp_path / "first", epochs=1)[2]
    begun = Run.__init__

    def of_the_second(run, *arguments):
        begun(run, *arguments)
        monkeypatch.setattr("paddle_dialog.training.run.rank", lambda: 1)

    monkeypatch.setattr(Run, "__init__", of_the_second)
    assert not set(follow(tmp_path / "second", epochs=1)[2]) & set(alone)


def test_an_evaluation_keeps_the_highest_accuracy(tmp_path, monkeypatch):
    run, saved = Run.begin(Classifier(), recipe(Classifier(), tmp_path)), []
    accuracies = iter([0.5, 0.25, 0.75, 0.75])
    monkeypatch.setattr(run, "_measure", lambda: next(accuracies))
    monkeypatch.setattr(run, "_save", saved.append)
    progress = run.progress
    for progress.step in (2, 2, 4, 6, 8):  # the second time at step 2 is none
        run._evaluate()
    assert progress.curve == [(2, 0.5), (4, 0.25), (6, 0.75), (8, 0.75)]
    assert saved == ["best", "best"] and progress.seconds > 0
    assert (progress.best_step, progress.best_figure, progress.evaluations_without_gain) == (6, 0.75, 1)


class Examples(NamedTuple):
    """A batch: the epoch, once for each example."""

    epochs: np.ndarray


class EpochDataset(io.Dataset):
    """Six examples that hold the epoch."""

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return self.epoch


ONES = np.ones(6, "int64")


def steps(batch_size, accumulate=1, epoch=0, done=0):
    """Return the steps of six examples; the first batch has one unit, and each that follows one more."""
    data = TrainingData(EncodedData(EpochDataset(), ONES), None, {}, lambda rows: Examples(np.array(rows)))
    units = itertools.count(1)
    order = LengthBucketSampler(ONES, batch_size)
    return list(epoch_steps(data, order, lambda batch: next(units), accumulate, epoch, done))


def test_a_dataset_gets_the_epoch_and_each_batch_has_its_units():
    resumed = steps(2, epoch=3, done=1)
    seen = [[batch.epochs.tolist() for ((batch, _),) in each] for each in (steps(2), resumed)]
    assert seen == [[[0, 0]] * 3, [[3, 3]] * 2]
    assert [[units for _, units in step] for step in steps(1, accumulate=4)] == [[1, 2, 3, 4], [5, 6]]


def test_a_classifier_is_trained_for_its_accuracy(tmp_path):
    config = recipe(Classifier(), tmp_path / "run", epochs=20, patience=15)
    run = Run.begin(Classifier(), config)
    progress = run.train()
    accuracies = [accuracy for _, accuracy in progress.curve]
    assert progress.best_figure == max(accuracies) > 0.8 > accuracies[0]
    assert progress.best_step == progress.curve[accuracies.index(max(accuracies))][0]
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert re.search(r"step 6/\d+ epoch 1\.00 loss \S+ accuracy 0\.\d{4} lr .* [1-9]\d* examples/s ", log)
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
