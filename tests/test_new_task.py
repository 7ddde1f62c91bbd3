"""The task of the page docs/new_task.md is built from there, trained and used, as a reader would."""

from __future__ import annotations

import json
import random
import re

import pytest
from command import ROOT, run

WORDS = {
    "weather": "snow rain wind storm frost sun",
    "sport": "goal match cup race coach medal",
    "markets": "shares bonds prices yen bank profit",
}


def files(page: str) -> dict[str, str]:
    """Return the files of a page, each a name in backticks and a block of code under it."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return dict(re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """Return the folder of the task, with headlines to learn from and others."""
    folder = tmp_path_factory.mktemp("tasks_of_a_reader")
    for name, text in files("new_task.md").items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    draw = random.Random(3)
    for name, count in (("train", 120), ("dev", 30)):
        sections = [draw.choice(list(WORDS)) for _ in range(count)]
        texts = [
            " ".join(draw.choices([*WORDS[section].split(), "today", "new"], k=5)) for section in sections
        ]
        lines = [
            f"{section}\t{text} {WORDS[section].split()[0]}\n"
            for section, text in zip(sections, texts, strict=True)
        ]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def reader(tool: str, folder, *arguments: str, stdin: bytes = b""):
    """Run a tool as a reader of the page does."""
    environment = {"PADDLE_DIALOG_TASKS": str(folder)}
    return run(tool, "-c", str(folder / "headline.yaml"), *arguments, environment=environment, stdin=stdin)


def test_the_task_of_the_page_is_trained_and_used(task):
    data = [f"data.train={task / 'train.tsv'}", f"data.dev={task / 'dev.tsv'}", f"output_dir={task / 'run'}"]
    settings = [word for each in data for word in ("-o", each)]
    trained = reader("train", task, *settings)
    assert trained.status == 0, trained.stderr
    assert float(re.search(r"best dev accuracy ([\d.]+)", trained.stdout)[1]) == 1.0

    evaluated = reader("evaluate", task, *settings, "--json")
    assert json.loads(evaluated.stdout) == {"n": 30, "accuracy": 1.0}, evaluated.stderr
    answered = reader("predict", task, *settings, "Heavy snow and a new storm", "A goal in the cup match")
    assert answered.stdout == "weather\tHeavy snow and a new storm\nsport\tA goal in the cup match\n"


def test_its_mistakes_are_told_like_any_others(task):
    (task / "odd.tsv").write_text("weather\tsnow\nwether\train\n", encoding="utf-8")
    wrong = reader("train", task, "-o", f"data.train={task / 'odd.tsv'}", "-o", f"output_dir={task / 'odd'}")
    assert wrong.error_line().endswith(
        "odd.tsv:2: 'wether' is no section; write one of weather, sport, markets"
    )
    unknown = reader("train", task, "-o", "model.widht=3")
    assert unknown.error_line().endswith("model.widht: unknown key; did you mean width?")
    assert "size of the embeddings" in reader("train", task, "--help-config", "model").stdout
