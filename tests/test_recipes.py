"""Tasks, recipes and models are found by their names, here or in a folder of the user's own."""

import re
import shutil
from pathlib import Path

import pytest
from command import ROOT, run_here
from empathetic_toys import save_chinese_model, save_model

import paddle_dialog
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import find_recipe, find_task, task_names
from paddle_dialog.serving.config import ModelSource, ServeConfig
from paddle_dialog.serving.server import find_models


def test_every_folder_with_a_task_is_found_under_its_own_name():
    names = task_names()
    assert {"couplet", "empathetic"} <= set(names)
    assert [find_task(name).name for name in names] == names


@pytest.mark.parametrize(
    "name", ["", "nowhere", "empathetic.nowhere", "..tests", "couplet/../couplet", "Couplet"]
)
def test_another_name_is_told_with_those_that_exist(name):
    with pytest.raises(UserError) as raised:
        find_task(name)
    assert str(raised.value) == f"task: '{name}' is unknown; there are {', '.join(task_names())}"


def test_nothing_in_the_library_names_a_task():
    folders = [path.name for path in (ROOT / "tasks").iterdir() if (path / "task.py").is_file()]
    named = re.compile(rf"(?<![A-Za-z])({'|'.join(folders)})s?(?![A-Za-z])")
    library = ROOT / "paddle_dialog"
    files = [path for path in library.rglob("*") if path.suffix in (".py", ".js", ".css", ".html", ".txt")]
    others = [library / "shipped" / "configs", library / "tasks", library / "commands"]
    others.append(library / "data" / "corpora.py")  # corpora are of poems, whatever a task makes of them
    files = [path for path in files if not any(path.is_relative_to(other) for other in others)]
    assert len(files) > 90 and "couplet" in folders
    lines = [(path, line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(path, line) for path, line in lines if named.search(line)] == []


def test_a_name_is_that_of_a_recipe_that_ships_unless_a_file_has_it(tmp_path, monkeypatch):
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


def test_named_weights_must_be_of_the_configs_language(tmp_path):
    for part in ("en", "zh"):
        (tmp_path / part).mkdir()
    recipes = {"en": save_model(tmp_path / "en"), "zh": save_chinese_model(tmp_path / "zh")}
    for own, other in (("en", "zh"), ("zh", "en")):
        weights = recipes[other].parent / "run" / "best"
        told = run_here("predict", "-c", recipes[own], "--weights", weights, "hello").error_line()
        assert f"is a model of the language '{other}', and the config is of '{own}'" in told


@pytest.fixture
def shipped(trained, tmp_path, monkeypatch):
    """Work in a folder with runs and bundles, beside recipes and weights that ship."""
    monkeypatch.chdir(tmp_path)
    for name in ("configs", "pretrained", "runs/couplet", "runs/mine"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr("paddle_dialog.recipes.RECIPES", tmp_path / "configs")
    monkeypatch.setattr("paddle_dialog.recipes.MODELS", tmp_path / "pretrained")
    best = {family: each.folder / "best" for family, each in trained.items()}
    (tmp_path / "pretrained" / "couplet").symlink_to(best["transformer"])
    for place in ("bundle", "runs/couplet/best", "runs/mine/best", "runs/half/last"):
        shutil.copytree(best["lstm"], tmp_path / place)
    shutil.copy(best["lstm"] / "config.yaml", "runs/mine")  # it names the folder where it was trained
    lines = trained["transformer"].config.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("output_dir"))
    for file in ("configs/couplet.yaml", "configs/other.yaml", "own.yaml", "couplet.yaml"):
        Path(file).write_text(text, encoding="utf-8")
    return best


NAMED = [
    # a recipe that ships has the weights that ship, whatever a run of its name has left
    (("couplet", None), "pretrained/couplet"),
    (("configs/couplet.yaml", None), "pretrained/couplet"),
    (("couplet.yaml", None), "runs/couplet/best"),  # not the one that ships, though it has its name
    # what is named answers with its own settings
    (("bundle", None), "bundle"),
    (("bundle/config.yaml", None), "bundle"),
    (("runs/mine", None), "runs/mine/best"),
    (("own.yaml", "bundle"), "bundle"),
    (("runs/mine/config.yaml", None), "runs/mine/best"),
    ((None, "bundle"), "bundle"),
    ((None, "runs/mine"), "runs/mine/best"),
    ((None, "couplet"), "pretrained/couplet"),
    (("couplet", "bundle"), "bundle"),
    (("couplet", "runs/half/last"), "runs/half/last"),
    # there is nothing to answer with, and nothing else is taken for it
    (("other", None), "no weights: runs/other/best does not exist, and none ship with the recipe other; tr"),
    (("own.yaml", None), "no weights: runs/own/best does not exist; train with this recipe, or name a run"),
    (("runs/half", None), "runs/half: is not a bundle"),
    ((None, "runs/half"), "runs/half: is not a bundle (no bundle.json in it); did you mean runs/half/last?"),
    ((None, None), "no model is named; give"),
]


@pytest.mark.parametrize(("named", "expected"), NAMED)
def test_what_answers_is_what_was_named(shipped, named, expected):
    """The command line, Python and the server go by one rule."""
    options = [word for pair in zip(("-c", "--weights"), named, strict=True) if pair[1] for word in pair]
    source = ModelSource(*named)
    if " " in expected:
        assert expected in run_here("predict", *options, "天山春红").error_line()
        with pytest.raises(UserError, match=re.escape(expected)):
            paddle_dialog.load(*named)
        if named != (None, None):  # where the name in `models` is taken for that of a recipe
            with pytest.raises(UserError, match=re.escape(expected)):
                find_models(ServeConfig(models={"couplet": source}))
        return
    outcome = run_here("predict", *options, "天山春红")
    (taken,) = [line for line in outcome.stderr.splitlines() if line.startswith("weights: ")]
    assert (outcome.status, taken.removeprefix("weights: ").endswith(expected)) == (0, True), outcome.stderr
    predictor = paddle_dialog.load(*named)
    (served,), _ = find_models(ServeConfig(models={"couplet": source}))
    family = "transformer" if "pretrained" in expected else "lstm_attention"
    assert predictor.config.model.name == family
    assert served.folder.as_posix().endswith(expected)
    assert served.recipe.decoding == predictor.config.decoding
    assert f"天山春红\t{predictor.predict(['天山春红'])[0][0].text}" in outcome.stdout


def test_weights_beside_a_recipe_keep_their_settings_and_say_so(shipped):
    told = run_here("predict", "-c", "couplet", "-o", "decoding.beam_size=1", "--weights", "bundle", "天山")
    assert (told.status, told.stderr) == (0, "weights: bundle\n")  # both have the same sections
    text = Path("configs/couplet.yaml").read_text(encoding="utf-8")
    changed = text.replace("max_length: 12}", "max_length: 15}")
    Path("configs/couplet.yaml").write_text(changed, encoding="utf-8")
    told = run_here("predict", "-c", "couplet", "--weights", "bundle", "天山")
    first = "bundle answers with its own settings (decoding), not with those of couplet; -o changes one\n"
    assert (told.status, told.stderr) == (0, f"{first}weights: bundle\n")


def test_a_run_that_is_named_by_its_output_dir_answers(shipped):
    told = run_here("predict", "-c", "couplet", "-o", "output_dir=runs/mine", "天山")
    assert (told.status, told.stderr) == (0, "weights: runs/mine/best\n")
    line = run_here("predict", "-c", "couplet", "-o", "output_dir=runs/half", "天山").error_line()
    assert "runs/half: has no 'best' yet; name --weights runs/half/last" in line
