"""Tasks, recipes and models are found by their names, here or in a folder of the user's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT, run_here
from empathetic_toys import save_model
from empathetic_zh_toys import save_chinese_model

from paddle_dialog.bundle.loading import default_weights
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import find_recipe, find_task, load_config, task_names


def test_every_folder_with_a_task_is_found_under_its_own_name() -> None:
    names = task_names()
    assert {"couplet", "empathetic"} <= set(names)
    assert [find_task(name).name for name in names] == names


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
    code = "from paddle_dialog.recipes import *; print(find_task('headline'), find_task('couplet').name)"
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


def test_a_name_is_that_of_a_recipe_that_ships_unless_a_file_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = find_recipe("couplet")
    assert shipped == ROOT / "configs" / "couplet.yaml"
    (tmp_path / "couplet").mkdir()
    assert find_recipe("couplet") == shipped
    (tmp_path / "couplet").rmdir()
    (tmp_path / "couplet").write_text("task: own\n", encoding="utf-8")
    assert find_recipe("couplet") == Path("couplet")
    with pytest.raises(UserError, match=r"^coplet_lstm: no such file, .*; did you mean couplet_lstm\?$"):
        find_recipe("coplet_lstm")
    with pytest.raises(UserError, match="there are budget, couplet, "):
        find_recipe("nowhere")


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        "en": save_model(tmp_path_factory.mktemp("en")),
        "zh": save_chinese_model(tmp_path_factory.mktemp("zh")),
    }


@pytest.mark.parametrize(("own", "other"), [("en", "zh"), ("zh", "en")])
def test_named_weights_must_be_of_the_configs_language(
    recipes: dict[str, Path], own: str, other: str
) -> None:
    weights = recipes[other].parent / "run" / "best"
    told = run_here("predict", "-c", recipes[own], "--weights", weights, "hello").error_line()
    assert f"is a model of the language '{other}', and the config is of '{own}'" in told


def test_a_model_that_ships_for_the_task_answers_its_own_language_only(
    recipes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paddle_dialog.recipes.MODELS", tmp_path)
    (tmp_path / "empathetic").symlink_to(recipes["en"].parent / "run" / "best")
    for own in ("en", "zh"):
        recipe = tmp_path / f"mine_{own}.yaml"
        text = recipes[own].read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if not line.startswith("output_dir")]
        recipe.write_text("\n".join(lines), encoding="utf-8")
        task, config = load_config(recipe)
        if own == "en":
            assert default_weights(task, config) == tmp_path / "empathetic"
            continue
        with pytest.raises(UserError, match="none ship for the task 'empathetic' and the language 'zh'"):
            default_weights(task, config)
