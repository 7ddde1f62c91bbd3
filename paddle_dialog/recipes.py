"""Tasks, recipes and trained models, found by name from any folder.

A task is a folder of the package `TASKS` whose `task.py` has a `TASK`. That package, and `configs` and `pretrained`
in the folder `shipped`, are links to the folders of these names in a checkout; an installed wheel has their files.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddle_dialog.bundle.folder import CONFIG, config_file, standing
from paddle_dialog.config.loader import parse_file_text, read_config
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.config.typed import build
from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle_dialog.task import Task

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
    weights: Path | None = None  # the bundle to take, where one was named beside it

    @property
    def ships_as(self) -> str | None:
        """Its name if it is one of those that ship."""
        file = self.file.resolve()
        return file.relative_to(RECIPES).with_suffix("").as_posix() if file.is_relative_to(RECIPES) else None

    def config(self) -> ExperimentConfig:
        """Return the checked settings; `output_dir` is `runs/<name of the file or of its bundle>` where not set.

        Raises:
            UserError: anything is wrong; all problems at once.
        """
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

    Raises:
        UserError: the recipe cannot be read or names no task.
    """
    file = find_recipe(path)
    values = read_config(file, overrides)
    is_run = file.name == CONFIG and any((file.parent / name).is_dir() for name in ("best", "last"))
    if is_run and not any(override.startswith("output_dir=") for override in overrides):
        values["output_dir"] = str(file.parent)  # wherever it was when it was written
    name = values.get("task")
    if not isinstance(name, str):
        raise UserError(f"{path}: task: is missing; name one, e.g. task: {task_names()[0]}")
    return Recipe(path, file, find_task(name), values)


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> tuple[Task, ExperimentConfig]:
    """Return the task of a recipe and its settings; see `read_recipe` and `Recipe.config`."""
    recipe = read_recipe(path, overrides)
    return recipe.task, recipe.config()


@lru_cache(maxsize=16)
def config_from_text(text: str, where: str) -> tuple[Task, ExperimentConfig]:
    """Return the task and configuration that `dump` wrote into a bundle."""
    mapping = parse_file_text(text, where)
    if not isinstance(mapping, dict) or not isinstance(mapping.get("task"), str):
        raise UserError(f"{where}: is damaged: it names no task")
    task = find_task(mapping["task"])
    return task, build(task.config_class, mapping, where)


def find_recipe(name: str | Path) -> Path:
    """Return the file of a recipe.

    Args:
        name: a file, the folder of a run or of a bundle, or the name of a recipe that ships.

    Returns:
        The path itself where it has a suffix or exists and no recipe has its name.

    Raises:
        UserError: it has no suffix, and no recipe of this name ships; or it is a folder of neither.
    """
    path = Path(name)
    if (standing(path) / CONFIG).is_file():
        return standing(path) / CONFIG
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
    """Return the task that a config names.

    Args:
        name: of its folder; a folder within another is named with a dot, e.g. `headline.short`.

    Raises:
        UserError: there is no such task.
    """
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
