"""The order of things around the steps of `paddle.Model.fit`, and the one reason why a run stops."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import paddle
import pytest
from paddle import nn

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.objective import Accuracy
from paddle_dialog.training.best_models import BestModels
from paddle_dialog.training.conductor import Conductor
from paddle_dialog.training.observer import Observer
from paddle_dialog.training.plan import Plan, Stop
from paddle_dialog.training.progress import Progress

BATCHES = 5


class NoModel(paddle.Model):
    """A model whose batches do nothing but note themselves and the first random number they draw."""

    def __init__(self, story: list[str]) -> None:
        super().__init__(nn.Linear(1, 1))
        self.story = story
        self.drawn: list[float] = []
        self.prepare()

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> None:
        self.story.append("batch")
        self.drawn.append(float(paddle.rand([])))


class Epoch(Sequence[list[paddle.Tensor]]):
    """The steps of an epoch that are left."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def __len__(self) -> int:
        return BATCHES

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Iterator[list[paddle.Tensor]]:
        while self.progress.batch < BATCHES:
            yield [paddle.zeros([1, 1])]


def conduct(
    progress: Progress,
    asked: Callable[[], bool] = lambda: False,
    evaluate: Callable[[], None] | None = None,
    **settings: Any,
) -> tuple[str, Stop | None, list[float]]:
    """Run `fit`; return what happened in order, the reason of the stop, and the random numbers drawn."""
    story: list[str] = []

    class Watching:
        """Stands for an `Observer`."""

        def report(self) -> None:
            story.append(f"report{progress.step}")

        def evaluate(self) -> None:
            story.append(f"evaluate{progress.step}")
            if evaluate:
                evaluate()

    model, plan = NoModel(story), Plan(TrainingConfig(**settings), BATCHES)
    observer: Any = Watching()
    conductor = Conductor(plan, progress, 7, asked, observer, lambda: story.append(f"save{progress.step}"))
    model.fit(
        Epoch(progress),
        epochs=plan.settings.epochs - progress.epoch,
        verbose=0,
        callbacks=[conductor],
    )
    return " ".join(story), conductor.stop, model.drawn


def test_all_happens_in_its_order() -> None:
    """Two epochs of five batches by twos, so three steps each; a word `batch` is a step."""
    progress = Progress()
    story, stop, drawn = conduct(progress, epochs=2, accumulate=2, log_every=2, eval_every=3, save_every=4)
    assert story == ("batch batch report2 batch evaluate3 batch report4 save4 batch batch report6 evaluate6")
    assert stop is Stop.FINISHED
    assert (progress.epoch, progress.batch, progress.step) == (2, 0, 6)
    assert len(set(drawn)) == 6


def test_an_epoch_ends_with_an_evaluation_where_no_number_of_steps_is_set() -> None:
    story, stop, _ = conduct(Progress(), epochs=2, log_every=5, eval_every=0)
    assert story == "batch " * 5 + "report5 evaluate5 " + "batch " * 5 + "report10 evaluate10"
    assert stop is Stop.FINISHED


def test_a_run_that_is_asked_stops_after_the_step_and_goes_on_where_it_stood() -> None:
    whole = conduct(Progress(), epochs=2, accumulate=2)[2]
    progress, asks = Progress(), itertools.count(1)
    story, stop, first = conduct(progress, lambda: next(asks) >= 4, epochs=2, accumulate=2)
    assert story.split()[-2:] == ["batch", "report4"]
    assert stop is Stop.ASKED and (progress.epoch, progress.batch, progress.step) == (1, 2, 4)
    _, stop, second = conduct(progress, epochs=2, accumulate=2)
    assert stop is Stop.FINISHED and first + second == whole


def test_a_run_that_is_asked_after_its_last_step_has_finished() -> None:
    progress = Progress()
    _, stop, _ = conduct(progress, lambda: progress.step == 5, epochs=1)
    assert stop is Stop.FINISHED


def test_max_steps_ends_the_run_inside_an_epoch() -> None:
    progress = Progress()
    story, stop, _ = conduct(progress, epochs=2, max_steps=3, save_every=3)
    assert story == "batch batch batch report3 evaluate3 save3"
    assert stop is Stop.FINISHED and (progress.epoch, progress.batch) == (0, 3)


@pytest.mark.parametrize(("eval_every", "steps"), [(2, 6), (0, 15)])
def test_a_run_stops_early_where_evaluations_bring_no_gain(eval_every: int, steps: int) -> None:
    """The first evaluation is the best one, and two more are waited for."""
    progress = Progress()

    def evaluate() -> None:
        progress.evaluations_without_gain += progress.step != (eval_every or BATCHES)

    _, stop, _ = conduct(progress, evaluate=evaluate, epochs=9, eval_every=eval_every, patience=2)
    assert stop is Stop.EARLY and progress.step == steps
    assert Plan(TrainingConfig(patience=2), BATCHES).completion(progress) is Stop.EARLY


class Evaluated:
    """Stands for a `TrainingModel`: of four dev examples as many are right as `right` says next."""

    average = None

    def __init__(self, right: Sequence[int]) -> None:
        self.network = self.skips = self
        self._right = iter(right)

    def settle(self) -> None:
        pass

    def eval(self) -> None:
        pass

    def measure(self, batches: Any) -> float:
        return next(self._right) / 4


class Told:
    """Stands for a sink, and for the batches, of which only the counts are looked at."""

    def __init__(self) -> None:
        self.best: list[bool] = []

    def evaluation(self, evaluation: Any) -> None:
        self.best.append(evaluation.best)


def test_an_evaluation_keeps_the_highest_accuracy(tmp_path: Any) -> None:
    progress, told, saved = Progress(), Told(), []
    best = BestModels(tmp_path, progress, Accuracy(), 1, saved.append)
    model: Any = Evaluated([2, 1, 3, 3])
    parts: list[Any] = [progress, told, model, [told], list, best, lambda: None]
    observer = Observer(Plan(TrainingConfig(), BATCHES), *parts)
    for progress.step in (2, 2, 4, 6, 8):  # the second time at step 2 is none
        observer.evaluate()
    assert progress.curve == [(2, 0.5), (4, 0.25), (6, 0.75), (8, 0.75)]
    assert told.best == [True, False, True, False] and saved == ["best", "best"]
    assert (progress.best_step, progress.best_figure, progress.evaluations_without_gain) == (6, 0.75, 1)
    assert progress.seconds > 0


def test_without_a_dev_set_nothing_is_evaluated() -> None:
    nothing: Any = None
    parts: list[Any] = [Progress(), Told(), *[nothing] * 5]
    Observer(Plan(TrainingConfig(), BATCHES), *parts).evaluate()
