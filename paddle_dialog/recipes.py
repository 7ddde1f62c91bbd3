"""Tasks, recipes and trained models, found by name from any folder.

A task is a folder of the package `TASKS` whose `task.py` has a `TASK`. That package, and `configs` and `pretrained`
in the folder `shipped`, are links to the folders of these names in a checkout; an installed wheel has their files.

Which weights answer:

1. those that `--weights` names: a bundle, the folder of a run, or the name of weights that ship;
2. those in the folder that `-c` names, where it is a bundle or a run;
3. those that ship with the recipe, unless `output_dir` is set;
4. those of the recipe's run.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddle_dialog.bundle.folder import (
    CONFIG,
    MANIFEST,
    TrainedModel,
    bundle_exists,
    config_file,
    load_bundle,
    plain_file,
    recover,
)
from paddle_dialog.config.loader import parse_file_text, read_config
from paddle_dialog.config.models import PretrainedConfig, with_pretrained_path
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.config.typed import build
from paddle_dialog.data.batching import warn_of_dev_data
from paddle_dialog.data.files import Record
from paddle_dialog.device import select_device
from paddle_dialog.errors import UserError
from paddle_dialog.models.pretrained_base import is_base

if TYPE_CHECKING:
    from paddle_dialog.predictor import Predictor
    from paddle_dialog.task import Task

logger = logging.getLogger("paddle_dialog")

RECIPES = (Path(__file__).parent / "shipped" / "configs").resolve()
MODELS = (Path(__file__).parent / "shipped" / "pretrained").resolve()
TASKS = "paddle_dialog.tasks"
_TASK_NAME = re.compile(r"[a-z]\w*(\.[a-z]\w*)*", re.ASCII)


@dataclass(frozen=True)
class Recipe:
    """A recipe that was read, whose settings are not checked yet."""

    path: str | Path  # as it was named
    file: Path  # where it was read
    task: Task
    values: Mapping[str, Any]
    weights: Path | None = None  # the bundle to take, where one was named too

    @property
    def ships_as(self) -> str | None:
        """Its name if it is one of those that ship."""
        file = self.file.resolve()
        return file.relative_to(RECIPES).with_suffix("").as_posix() if file.is_relative_to(RECIPES) else None

    def config(self) -> ExperimentConfig:
        """Return the checked settings; `output_dir` is `runs/<name of the file or of its bundle>` where not set."""
        config = build(self.task.config_class, self.values, str(self.path))
        if config.output_dir is None:
            name = self.file.resolve().parent.name if self.file.name == CONFIG else self.file.stem
            return dataclasses.replace(config, output_dir=f"runs/{name}")
        return config


def read_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe.

    Args:
        path: the YAML file, the name of a recipe that ships, or the folder of a run or of a bundle.
        overrides: `section.key=value` each, the last one of a key wins.
    """
    file = find_recipe(path)
    values = read_config(file, overrides)
    is_run = file.name == CONFIG and any((file.parent / name).is_dir() for name in ("best", "last"))
    if is_run and "output_dir" not in {
        override.partition("=")[0].partition(".")[0] for override in overrides
    }:
        values["output_dir"] = str(file.parent)  # wherever it was when it was written
    name = values.get("task")
    if not isinstance(name, str):
        what = "is missing" if name is None else "is not text"
        raise UserError(f"{path}: task: {what}; name one, e.g. task: {task_names()[0]}")
    return Recipe(path, file, find_task(name), values)


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> tuple[Task, ExperimentConfig]:
    """Return the task of a recipe and its checked settings."""
    recipe = read_recipe(path, overrides)
    return recipe.task, recipe.config()


def config_from_text(text: str, where: str) -> tuple[Task, ExperimentConfig]:
    """Return the task and configuration that `dump` wrote into a bundle."""
    mapping = parse_file_text(text, where)
    if not isinstance(mapping, dict) or not isinstance(mapping.get("task"), str):
        raise UserError(f"{where}: is damaged: it names no task")
    task = find_task(mapping["task"])
    return task, build(task.config_class, mapping, where)


def find_recipe(name: str | Path) -> Path:
    """Return the file of a recipe: a file, that in the folder of a run or of a bundle, or one that ships."""
    path = Path(name)
    if (recover(path) / CONFIG).exists():
        return plain_file(recover(path) / CONFIG)
    if path.is_file() or (path.suffix and not path.is_dir()):
        return path
    shipped = {
        recipe.relative_to(RECIPES).with_suffix("").as_posix(): recipe for recipe in RECIPES.rglob("*.yaml")
    }
    if str(name) in shipped:
        return shipped[str(name)]
    if path.exists():
        return config_file(path)  # which says what is wrong with it
    near = difflib.get_close_matches(str(name), shipped, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(shipped)) or 'none at all'}"
    raise UserError(f"{name}: no such file, and no recipe of this name ships; {hint}")


def find_task(name: str) -> Task:
    """Return the task that a config names; a folder within another is named with a dot, e.g. `headline.short`."""
    files = (root.joinpath(*name.split("."), "task.py") for root in _roots())
    if not (_TASK_NAME.fullmatch(name) and any(file.is_file() for file in files)):
        raise UserError(f"task: '{name}' is unknown; there are {', '.join(task_names())}")
    task: Task = importlib.import_module(f"{TASKS}.{name}.task").TASK
    return task


def task_names() -> list[str]:
    """Return the names of all tasks."""
    return sorted(module.removesuffix(".task").removeprefix(f"{TASKS}.") for module in _modules("task.py"))


def task_commands() -> dict[str, str]:
    """Return the commands that tasks bring, `<name>_command.py` in their folders: module by name of the command."""
    return {module.rpartition(".")[2].removesuffix("_command"): module for module in _modules("*_command.py")}


def _modules(pattern: str) -> list[str]:
    """Return the modules in the folders of tasks whose files match a pattern."""
    files = ((root, file) for root in _roots() for file in root.rglob(pattern))
    return sorted({".".join([TASKS, *file.relative_to(root).with_suffix("").parts]) for root, file in files})


def _roots() -> list[Path]:
    """Return the folders of tasks."""
    return [Path(folder) for folder in importlib.import_module(TASKS).__path__]


@dataclass(frozen=True)
class LoadedModel:
    """A bundle in memory."""

    folder: Path
    task: Task
    config: ExperimentConfig  # its own, with a recipe's seed and settings of inference where one was given
    trained: TrainedModel

    @cached_property
    def predictor(self) -> Predictor:
        """The predictor of this model."""
        return self.task.predictor(self.config, self.trained)

    def measure(self, source: str, predictions: Path | None = None, answers: bool = True) -> Record:
        """Return the metrics of its task on a source, without `answers` only those that need none written."""
        if source == self.config.data.dev:
            warn_of_dev_data(self.config.data)
        if not answers:
            return self.task.measure_likelihood(self.predictor, source)
        return self.task.evaluate(self.predictor, source, predictions)


def load_model(
    folder: Path,
    task: Task | None = None,
    recipe: ExperimentConfig | None = None,
    through_paddle: bool = False,
) -> LoadedModel:
    """Read a bundle.

    Args:
        task: the task it must be of; any by default.
        recipe: its seed and inference settings replace the bundle's own.
        through_paddle: answer through Paddle's network, also where NumPy would.
    """
    if task is not None and recipe is not None and is_base(folder):
        network: Any = task.build_network(recipe, dict.fromkeys(task.vocabulary_names, 0))
        vocabularies = dict.fromkeys(task.vocabulary_names, network.vocabulary)
        return LoadedModel(folder, task, recipe, TrainedModel.of_network(network, vocabularies))
    bundle = load_bundle(folder)
    if task is not None:
        _check_same(folder, "task", bundle.task, task.name)
    bundle_task, config = config_from_text(bundle.config_text, f"{folder}/config.yaml")
    if recipe is not None:
        _check_same(folder, "language", config.language, recipe.language)
        sections = {name: getattr(recipe, name) for name in recipe.inference_sections}
        config = dataclasses.replace(config, seed=recipe.seed, **sections)
        for key, problem in config.problems():
            raise UserError(f"{folder}: this model does not fit the config: {key} {problem}")
    if isinstance(config.model, PretrainedConfig):
        config = with_pretrained_path(config, folder, recipe)
    elif missing := sorted(set(bundle_task.vocabulary_names) - bundle.vocabularies.keys()):
        raise UserError(f"{folder}: has no vocabulary '{missing[0]}'; restore or retrain it")
    untrained = partial(bundle_task.build_network, config)
    trained = TrainedModel.of_bundle(bundle, untrained, folder, through_paddle)
    return LoadedModel(folder, bundle_task, config, trained)


def load_answering(recipe: Recipe, device: str = "auto", through_paddle: bool = False) -> LoadedModel:
    """Read the bundle that answers for a recipe, on a device."""
    config = recipe.config()
    select_device(device)
    return load_model(find_weights(recipe), recipe.task, config, through_paddle)


def _check_same(folder: str | Path, what: str, model: str | None, config: str | None) -> None:
    if model != config:
        raise UserError(
            f"{folder}: is a model of the {what} '{model}', and the config is of '{config}'; "
            "name other weights with --weights or another config with -c"
        )


def named_recipe(
    config: str | Path | None, weights: str | Path | None, overrides: Sequence[str] = ()
) -> Recipe:
    """Return the recipe of the settings: the one named; with weights, that of their folder, unless it is one's own.

    Args:
        config: a recipe, or the folder of a run or of a bundle; with weights it must be of their task and language.
        weights: a bundle, the folder of a run, the name of weights that ship, or a pre-trained model, not tuned.
    """
    recipe = None if config is None else read_recipe(config, overrides)
    if weights is None:
        if recipe is None:
            raise UserError("no model is named; give a recipe with -c, or a run or a bundle with --weights")
        return recipe
    folder = find_model(weights)
    if is_base(folder):
        return _untuned(recipe, folder)
    file = config_file(folder)
    if recipe is not None:
        if recipe.ships_as is None:
            return dataclasses.replace(recipe, weights=folder)
        own, others = read_recipe(file).config(), read_recipe(recipe.file).config()
        _check_same(weights, "task", own.task, others.task)
        _check_same(weights, "language", own.language, others.language)
        differing = [name for name in own.inference_sections if getattr(own, name) != getattr(others, name)]
        if differing:
            note = "%s answers with its own settings (%s), not with those of %s; -o changes one"
            logger.info(note, weights, ", ".join(differing), config)
    return read_recipe(file, overrides)


def _untuned(recipe: Recipe | None, base: Path) -> Recipe:
    """Return a recipe with the folder of a pre-trained model, as it is, in place of the one that it tunes."""
    if recipe is None or not isinstance(recipe.config().model, PretrainedConfig):
        sentence = "is a pre-trained model that is not tuned; name a recipe of model.name: pretrained with -c"
        raise UserError(f"{base}: {sentence}")
    model = {**recipe.values["model"], "pretrained": str(base), "lora": None}
    return dataclasses.replace(recipe, values={**recipe.values, "model": model}, weights=base)


def find_model(named: str | Path) -> Path:
    """Return the bundle that is named by its folder, by that of a run, or by the name of weights that ship."""
    folder, shipped = Path(named), MODELS / named
    if bundle_exists(folder / "best"):
        return folder / "best"
    return shipped if shipped.is_dir() and not (folder / MANIFEST).is_file() else folder


def find_weights(recipe: Recipe) -> Path:
    """Return the folder of the weights that answer for a recipe, in the order given at the top of this file."""
    if recipe.weights is not None:
        return recipe.weights
    folder = recipe.file.parent
    if recipe.file.name == CONFIG and (folder / MANIFEST).is_file():
        return folder
    name = recipe.ships_as
    shipped = None if name is None else MODELS / name
    if shipped is not None and shipped.is_dir() and recipe.values.get("output_dir") is None:
        return shipped
    run = Path(recipe.config().output_dir or "")
    best, last = run / "best", run / "last"
    if bundle_exists(best):
        return best
    if bundle_exists(last):
        raise UserError(f"{run}: has no 'best' yet; name --weights {last}, or those of another folder")
    none = "" if name is None else f", and none ship with the recipe {name}"
    raise UserError(
        f"no weights: {best} does not exist{none}; train with this recipe, or name a run or a bundle with --weights"
    )
