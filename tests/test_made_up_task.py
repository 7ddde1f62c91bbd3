"""A made-up task, a folder of its own and nothing else: the tools, the server and the page take it as it is."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import ROOT, Outcome, run_here
from serving_toys import running

import tasks
from paddle_dialog.serving.app import create_app
from paddle_dialog.serving.config import ModelSource, ServeConfig
from paddle_dialog.serving.models import find_models, load_models
from paddle_dialog.serving.word_filter import WordFilter


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the recipe of a trained model of the task, whose folder lies among others of a user's own."""
    folder = tmp_path_factory.mktemp("made_up")
    page = shutil.copytree(ROOT / "tests" / "made_up" / "echo", folder / "tasks" / "echo") / "page"
    page.mkdir()
    text = (ROOT / "docs" / "tabs.md").read_text(encoding="utf-8")
    for name, content in re.findall(r"\n`(\S+)`\n\n```\w+\n(.*?)```\n", text, re.S):
        (page / name).write_text(content, encoding="utf-8")
    (folder / "words.txt").write_text("ab abc abcd a ab abc\n", encoding="utf-8")
    path = folder / "echo.yaml"
    data = f"{{train: {folder}/words.txt, dev: {folder}/words.txt, batch_size: 2}}"
    path.write_text(f"task: echo\noutput_dir: {folder}/run\ndata: {data}\ntraining: {{max_steps: 3}}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "__path__", [*tasks.__path__, str(folder / "tasks")])
        outcome = run_here("train", "-c", path)
        assert outcome.status == 0, outcome.stderr
        yield path
    for name in [name for name in sys.modules if name.startswith("tasks.echo")]:
        del sys.modules[name]


def predict(recipe: Path, *arguments: object) -> Outcome:
    return run_here("predict", "-c", recipe, *arguments)


def test_it_brings_its_arguments(recipe: Path) -> None:
    shown = predict(recipe, "--help").stdout
    assert "--shout" in shown and "answer in capitals" in shown and "--template" not in shown
    assert predict(recipe, "hi", "--shout", "you", "--times", 2).stdout == "HI HI\nYOU YOU\n"
    assert predict(recipe, "hi", "--json").stdout == '{"echo": "hi"}\n'
    assert "unrecognized arguments: --template" in predict(recipe, "hi", "--template", "x").error_line()
    assert "invalid int value: 'x'" in predict(recipe, "hi", "--times", "x").error_line()
    assert "unrecognized arguments: --shout" in predict(Path("couplet"), "春", "--shout").error_line()


def test_it_brings_its_addresses_and_its_tab(recipe: Path) -> None:
    config = ServeConfig(models={"echo": ModelSource(config=str(recipe))})
    found, missing = find_models(config)
    app = create_app(
        config,
        [e for m in found for e in m.endpoints],
        lambda: load_models(found, WordFilter(), "cpu"),
        WordFilter(),
    )
    with running(app) as client:
        assert client.post("/v1/echo", json={"text": "hi"}).json() == {"echo": "hi"}
        assert client.post("/v1/echo/reversed", json={"text": "hi"}).json() == {"echo": "ih"}
        operations = client.get("/openapi.json").json()["paths"]
        (card,) = client.get("/v1/models").json()["models"]
        page, script = client.get("/").text, client.get("/tasks/echo/tab.js").text
    assert (
        operations["/v1/echo/reversed"]["post"]["operationId"]
        != operations["/v1/echo"]["post"]["operationId"]
    )
    assert card["path"] == "/v1/echo" and card["further"] == {"/v1/echo/reversed": {"reversed": True}}
    assert missing == [] and (card["task"], card["family"], card["parameters"]) == ("echo", "parity", 6)
    assert '<form id="echo-form" novalidate>' in page and "export function start()" in script
