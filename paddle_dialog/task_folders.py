"""The tasks by name: each is a folder of the package `tasks` whose `task.py` has a `TASK`."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle_dialog.task import Task

_NAME = re.compile(r"[a-z]\w*(\.[a-z]\w*)*", re.ASCII)


def find_task(name: str) -> Task:
    """Return the task that a config names.

    Args:
        name: of its folder; a folder within another is named with a dot, e.g. `headline.short`. A former name of
            the task, in an older recipe or bundle, will do.

    Raises:
        UserError: there is no such task.
    """
    if _NAME.fullmatch(name) and any(path.is_file() for path in _files(name)):
        return _load(name)
    names = task_names()
    for task in map(_load, names):
        if name in task.former_names:
            return task
    raise UserError(f"task: '{name}' is unknown; there are {', '.join(names)}")


def task_names() -> list[str]:
    """Return the names of all tasks."""
    roots = _roots()
    files = [(root, file) for root in roots for file in root.rglob("task.py")]
    return sorted({".".join(file.relative_to(root).parent.parts) for root, file in files})


def _load(name: str) -> Task:
    task: Task = importlib.import_module(f"tasks.{name}.task").TASK
    return task


def _files(name: str) -> list[Path]:
    """Return the files that may hold the task of a name."""
    return [root.joinpath(*name.split("."), "task.py") for root in _roots()]


def _roots() -> list[Path]:
    """Return the folders of tasks."""
    return [Path(folder) for folder in importlib.import_module("tasks").__path__]
