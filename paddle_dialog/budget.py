"""What answers may take: the times of several kinds of answer, each beside that of another kind.

All of them are measured in one process and in turns, so that their ratios hold on any machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from paddle_dialog.bundle.loading import find_weights, load_model, named_recipe
from paddle_dialog.config.fields import Problem, at_least, setting
from paddle_dialog.config.loader import read_config
from paddle_dialog.config.typed import build
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import GenerationPredictor, Predictor
from paddle_dialog.recipes import find_recipe


@dataclass(frozen=True)
class AnswerKind:
    """Answers of one kind, and what they may take."""

    config: str | None = setting(None, "the recipe, or the folder of a run or a bundle")
    override: list[str] = field(default_factory=list)
    weights: str | None = setting(
        None, "a run or a bundle, with its own settings; by default what the recipe names"
    )
    texts: list[str] = field(default_factory=list)
    n_best: int | None = setting(None, "candidates for each text", minimum=1)
    beside: str | None = setting(None, "the kind whose time is the unit of the limit")
    limit: float | None = setting(None, "greatest ratio of the two times", above=0.0)


@dataclass(frozen=True)
class BudgetConfig:
    """A budget."""

    rounds: int = at_least(1, 20, "answers of each kind; their median counts")
    answers: dict[str, AnswerKind] = field(default_factory=dict)

    def problems(self) -> Iterator[Problem]:
        """Yield what contradicts itself."""
        if not self.answers:
            yield "answers", "names none; add one as NAME: {config: RECIPE, texts: [...]}"
        for name, kind in self.answers.items():
            if not kind.texts:
                yield f"answers.{name}.texts", "is empty; name what is answered"
            if kind.beside is not None and kind.beside not in self.answers:
                yield f"answers.{name}.beside", f"'{kind.beside}' is none of {', '.join(self.answers)}"
            if (kind.beside is None) != (kind.limit is None):
                yield f"answers.{name}.limit", "needs the kind beside which it is set, and that a limit"


@dataclass(frozen=True)
class Spent:
    """What answers of one kind took."""

    milliseconds: float  # processor time of one answer, the median
    ratio: float | None = None  # to the kind beside it, the median over the rounds; None without one
    limit: float | None = None  # of the ratio

    @property
    def exceeded(self) -> bool:
        """Whether the ratio is above its limit."""
        return self.ratio is not None and self.limit is not None and self.ratio > self.limit

    def __str__(self) -> str:
        time_spent = f"{self.milliseconds:8.1f} ms"
        if self.ratio is None or self.limit is None:
            return time_spent
        return f"{time_spent}{self.ratio:8.2f} of {self.limit:g}{'  EXCEEDED' if self.exceeded else ''}"


def read_budget(path: str | Path, overrides: Sequence[str] = ()) -> BudgetConfig:
    """Read a budget.

    Raises:
        UserError: anything is wrong with it; all problems at once.
    """
    return build(BudgetConfig, read_config(find_recipe(path), overrides), str(path))


def measure_budget(budget: BudgetConfig) -> dict[str, Spent]:
    """Answer texts of all kinds in turns.

    Raises:
        UserError: a recipe, a bundle or a text cannot be used.
    """
    loaded: dict[tuple[object, ...], Predictor] = {}
    predictors = {}
    for name, kind in budget.answers.items():
        key = kind.config, *kind.override, kind.weights
        if key not in loaded:
            loaded[key] = _predictor(kind)
        predictors[name] = loaded[key]
        if kind.n_best is not None and not isinstance(predictors[name], GenerationPredictor):
            raise UserError(f"answers.{name}.n_best: a model of {kind.config} writes no candidates")
    times: dict[str, list[float]] = {name: [] for name in budget.answers}
    for number in range(-1, budget.rounds):  # the first round warms up the caches
        for name, kind in budget.answers.items():
            spent = _time_of(predictors[name], kind, kind.texts[number % len(kind.texts)])
            if number >= 0:
                times[name].append(spent)
    return {name: _spent(kind, times[name], times) for name, kind in budget.answers.items()}


def _predictor(kind: AnswerKind) -> Predictor:
    recipe = named_recipe(kind.config, kind.weights, kind.override)
    return load_model(find_weights(recipe), recipe.task, recipe.config()).predictor


def _time_of(predictor: Predictor, kind: AnswerKind, text: str) -> float:
    """Return the milliseconds of processor time that one answer takes."""
    options: dict[str, Any] = {} if kind.n_best is None else {"n_best": kind.n_best}
    began = time.process_time()
    list(predictor.predict_records([text], **options))
    return 1000 * (time.process_time() - began)


def _spent(kind: AnswerKind, spent: Sequence[float], times: Mapping[str, Sequence[float]]) -> Spent:
    """Return the medians; the ratio is that of answers of one round, which a busy machine slows alike."""
    if kind.beside is None:
        return Spent(median(spent))
    ratios = [one / other for one, other in zip(spent, times[kind.beside], strict=True)]
    return Spent(median(spent), median(ratios), kind.limit)
