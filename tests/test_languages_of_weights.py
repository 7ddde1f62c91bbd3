"""Weights of one language under a config of another: refused where they are named, passed over where they ship."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_here
from empathetic_toys import save_model
from empathetic_zh_toys import save_chinese_model

from paddle_dialog.bundle.loading import default_weights
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config


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
