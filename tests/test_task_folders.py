"""A task is found by the name of its folder, here or in a folder of the user's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT

from paddle_dialog.errors import UserError
from paddle_dialog.task_folders import find_task, task_names


def test_every_folder_with_a_task_is_found_under_its_own_name() -> None:
    names = task_names()
    assert {"couplet", "empathetic", "empathetic.ranking"} <= set(names)
    assert [find_task(name).name for name in names] == names


def test_an_older_bundle_knows_a_task_by_its_former_name() -> None:
    assert find_task("empathetic_ranker") is find_task("empathetic.ranking")


@pytest.mark.parametrize(
    "name", ["", "nowhere", "empathetic.nowhere", "..tests", "couplet/../couplet", "Couplet"]
)
def test_another_name_is_told_with_those_that_exist(name: str) -> None:
    with pytest.raises(UserError) as raised:
        find_task(name)
    assert str(raised.value) == f"task: '{name}' is unknown; there are {', '.join(task_names())}"


def test_a_task_of_the_users_own_is_found(tmp_path: Path) -> None:
    (tmp_path / "headline").mkdir()
    (tmp_path / "headline" / "task.py").write_text(
        "from tasks.headline.words import TASK\n", encoding="utf-8"
    )
    (tmp_path / "headline" / "words.py").write_text("TASK = 'the headline'\n", encoding="utf-8")
    code = "from paddle_dialog.task_folders import *; print(find_task('headline'), find_task('couplet').name)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PADDLE_DIALOG_TASKS": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.stdout == "the headline couplet\n", done.stderr


def test_nothing_in_the_library_names_a_task() -> None:
    folders = [path.name for path in (ROOT / "tasks").iterdir() if (path / "task.py").is_file()]
    named = re.compile(rf"(?<![A-Za-z])({'|'.join(folders)})s?(?![A-Za-z])")
    library = ROOT / "paddle_dialog"
    files = [path for path in library.rglob("*") if path.suffix in (".py", ".js", ".css", ".html", ".txt")]
    files = [path for path in files if not path.is_relative_to(library / "shipped" / "configs")]
    assert len(files) > 100 and "couplet" in folders
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if named.search(line)
    ]
    assert found == []
