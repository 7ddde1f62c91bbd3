"""The course: its notebooks run, and its table names what exists."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import matplotlib
import notebooks
import pytest

COURSE = Path(__file__).parents[1] / "docs" / "course"
QUICKER = {
    **{f"EPOCHS = {many}\n": "EPOCHS = 1\n" for many in (12, 36)},
    **{f"STEPS = {many}\n": "STEPS = 12\n" for many in (150, 250)},
}
NAMES = sorted(path.name for path in COURSE.glob("*.ipynb"))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_what_it_has_saved(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    notebook = json.loads((COURSE / name).read_text(encoding="utf-8"))
    saved = [[each["output_type"] for each in cell.get("outputs", ())] for cell in notebook["cells"]]
    shown = [[each["output_type"] for each in cell] for cell in notebooks.run(COURSE / name, QUICKER)]
    assert shown == saved
    text = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    assert len(re.findall(r"^\*\*\d\.\*\*", text, re.MULTILINE)) == 6  # three exercises, three answers
    private = re.findall(r"\bimport\b.*\b_[a-z]\w*|\w\.(?!_asdict\b)_[a-z]\w*", text)
    assert not private


def test_the_table_names_classes_tests_and_cells_that_exist():
    page = (COURSE / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)[2:]
    assert len(rows) > 40
    for _, classes, test, cell in rows:
        for name in re.findall(r"`([\w.]+\.\w+)`", classes):
            module, _, attribute = f"paddle_dialog.{name}".rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name
        for file in re.findall(r"`(test_\w+)`", test):
            assert (COURSE.parents[1] / "tests" / f"{file}.py").is_file(), file
        for name, heading in re.findall(r"(\w+): ([^;|]+)", cell):
            headings = json.loads((COURSE / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
            assert any(f"# {heading.strip()}\n" in "".join(c["source"]) + "\n" for c in headings), (
                name,
                heading,
            )
