"""The times of several kinds of answer, measured in turns: the ratio of two kinds holds on any machine."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from paddle_dialog.config.fields import Problem, at_least, setting
from paddle_dialog.recipes import find_weights, load_model, named_recipe


@dataclass(frozen=True)
class AnswerKind:
    """Answers of one kind, and what they may take."""

    config: str = setting(dataclasses.MISSING, "the recipe, or the folder of a run or a bundle")
    texts: list[str] = setting(dataclasses.MISSING, "what is answered in turns")  # noqa: RUF009
    override: list[str] = field(default_factory=list)
    n_best: int | None = setting(None, "candidates for each text", minimum=1)
    beside: str | None = setting(None, "the kind whose time is the unit of the limit")
    limit: float = setting(1.0, "greatest ratio of the two times", above=0.0)


@dataclass(frozen=True)
class BudgetConfig:
    """A budget."""

    answers: dict[str, AnswerKind] = setting(dataclasses.MISSING, "the kinds by name")  # noqa: RUF009
    rounds: int = at_least(1, 20, "answers of each kind; their median counts")

    def problems(self) -> Iterator[Problem]:
        """Yield what contradicts itself."""
        for name, kind in self.answers.items():
            if not kind.texts:
                yield f"answers.{name}.texts", "is empty; name what is answered"
            if kind.beside is not None and kind.beside not in self.answers:
                yield f"answers.{name}.beside", f"'{kind.beside}' is none of {', '.join(self.answers)}"


def measure_budget(budget: BudgetConfig) -> Iterator[tuple[str, float, float | None]]:
    """Yield the name of each kind, the median processor time of its answers in ms, and its ratio to another kind."""
    loaded: dict[tuple[str, ...], Any] = {}
    times: dict[str, list[float]] = {name: [] for name in budget.answers}
    for number in range(-1, budget.rounds):  # the first round warms up the caches
        for name, kind in budget.answers.items():
            key = kind.config, *kind.override
            if key not in loaded:
                recipe = named_recipe(kind.config, None, kind.override)
                loaded[key] = load_model(find_weights(recipe), recipe.task, recipe.config()).predictor
            options = {} if kind.n_best is None else {"n_best": kind.n_best}
            began = time.process_time()
            list(loaded[key].predict_records([kind.texts[number % len(kind.texts)]], **options))
            times[name] += [1000 * (time.process_time() - began)] if number >= 0 else []
    for name, kind in budget.answers.items():
        unit = None if kind.beside is None else times[kind.beside]
        ratio = None if unit is None else median(a / b for a, b in zip(times[name], unit, strict=True))
        yield name, median(times[name]), ratio
