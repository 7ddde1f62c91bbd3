"""A training run: its order, its stops, and its batches."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import paddle
import pytest
from paddle import io
from test_other_tasks import Classifier, recipe

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.data.batching import EncodedData, LengthBucketSampler, TrainingBatches, TrainingData
from paddle_dialog.training.progress import Plan, Progress, Stop
from paddle_dialog.training.run import Run

BATCHES = 6  # of ten examples


def follow(
    folder: Path,
    asked: Callable[[], bool] = lambda: False,
    evaluate: Callable[[Progress], None] = lambda progress: None,
    resume: bool = False,
    **settings: Any,
) -> tuple[str, Run, list[float]]:
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

    def note(name: str, then: Callable[..., Any] | None = None) -> Callable[[], None]:
        def noted() -> None:
            story.append(f"{name}{run.progress.step}")
            if then:
                then(run.progress)
            run.stop = run.stop or run.plan.completion(run.progress)

        return noted

    changed._report_averages, changed._evaluate = note("report"), note("evaluate", evaluate)
    changed._save = lambda name: (story.append(f"save{run.progress.step}"), save(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paddle_dialog.training.run.orderly_stop", lambda: Asked(asked))
        run.train()
    return " ".join(story), run, drawn


class Asked:
    """Stands for `orderly_stop`."""

    def __init__(self, asked: Callable[[], bool]) -> None:
        self.asked = asked

    def __enter__(self) -> Callable[[], bool]:
        return self.asked

    def __exit__(self, *_: object) -> None:
        pass


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


@pytest.mark.parametrize(("eval_every", "steps"), [(2, 6), (0, 18)])
def test_a_run_stops_early_where_evaluations_bring_no_gain(tmp_path, eval_every, steps):
    """The first evaluation is the best one, and two more are waited for."""

    def evaluate(progress: Progress) -> None:
        progress.evaluations_without_gain += progress.step != (eval_every or BATCHES)

    _, run, _ = follow(tmp_path, evaluate=evaluate, epochs=9, eval_every=eval_every, patience=2)
    assert run.stop is Stop.EARLY and run.progress.step == steps
    assert Plan(TrainingConfig(patience=2), BATCHES, Progress()).completion(run.progress) is Stop.EARLY


def test_each_process_draws_for_itself(tmp_path, monkeypatch):
    alone = follow(tmp_path / "first", epochs=1)[2]
    begun = Run.__init__

    def of_the_second(run: Run, *arguments: Any) -> None:
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

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> int:
        return self.epoch


ONES = np.ones(6, "int64")


def batches(batch_size: int, accumulate: int = 1) -> TrainingBatches:
    """Return batches of six examples; the first has one unit, and each that follows one more."""
    data = TrainingData(EncodedData(EpochDataset(), ONES), None, {}, lambda rows: Examples(np.array(rows)))
    units = itertools.count(1)
    return TrainingBatches(data, LengthBucketSampler(ONES, batch_size), lambda batch: next(units), accumulate)


def test_a_dataset_gets_the_epoch_and_each_batch_has_its_units():
    loader = batches(2)
    seen = []
    for epoch, done in ((0, 0), (3, 1)):  # the second is resumed inside an epoch
        seen.append([batch.epochs.tolist() for ((batch, _),) in loader.steps(epoch, done)])
    assert seen == [[[0, 0]] * 3, [[3, 3]] * 2]
    loader = batches(1, accumulate=4)
    assert [[units for _, units in step] for step in loader.steps(0, 0)] == [[1, 2, 3, 4], [5, 6]]
    assert loader.units == 21


def test_counters_come_back_and_others_are_refused():
    counters = Progress(
        step=3, best_step=3, best_figure=-1.5, curve=[(3, -1.5)]
    )  # an objective may be negative
    stored = dataclasses.asdict(counters)
    assert Progress.from_dict(stored) == counters
    for wrong in (
        {"step": -1},
        {"step": "3"},
        {"best_figure": math.nan},
        {"seconds": math.inf},
        {"curve": None},
    ):
        with pytest.raises((ValueError, TypeError)):
            Progress.from_dict({**stored, **wrong})
