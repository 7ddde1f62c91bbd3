"""Recipes: the task that a YAML file names, and its checked configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from paddle_dialog.config.loader import read_config
from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.config.typed import build
from paddle_dialog.errors import UserError
from paddle_dialog.task import Task
from paddle_dialog.task_folders import find_task, task_names


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> tuple[Task, ExperimentConfig]:
    """Read a recipe.

    Args:
        path: the YAML file, or the name of a recipe that ships.
        overrides: `section.key=value` each, the last one of a key wins.

    Returns:
        The task it names and its configuration; `output_dir` is `runs/<name of the file>` where not set.

    Raises:
        UserError: anything is wrong with it; all problems at once.
    """
    mapping = read_config(path, overrides)
    task = _task_of(mapping, path)
    config = build(task.config_class, mapping, str(path))
    if config.output_dir is None:
        config = dataclasses.replace(config, output_dir=f"runs/{Path(path).stem}")
    return task, config


def task_of_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Task:
    """Return the task that a recipe names; its other keys may be wrong.

    Raises:
        UserError: the recipe cannot be read or names no task.
    """
    return _task_of(read_config(path, overrides), path)


def _task_of(mapping: Mapping[str, Any], path: str | Path) -> Task:
    name = mapping.get("task")
    if not isinstance(name, str):
        raise UserError(f"{path}: task: is missing; name one, e.g. task: {task_names()[0]}")
    return find_task(name)


def config_from_text(text: str, where: str) -> tuple[Task, ExperimentConfig]:
    """Return the task and configuration that `dump` wrote into a bundle."""
    mapping = yaml.safe_load(text)
    task = find_task(mapping["task"])
    return task, build(task.config_class, mapping, where)
