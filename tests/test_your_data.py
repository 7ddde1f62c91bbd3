"""The page on one's own data and the notebook beside it, done as they are written."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from command import ROOT, records, run_here

import paddle_dialog
from paddle_dialog.serving.server import find_models, load_serve_config

FEW_STEPS = ["-o", "training.max_steps=1", "-o", "data.batch_size=8"]


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = (ROOT / "tasks" / "couplet" / "sample.tsv").read_text(encoding="utf-8").splitlines(True)
    Path("mine.tsv").write_text("".join(lines[:12]), encoding="utf-8")
    Path("dev.tsv").write_text("".join(lines[12:16]), encoding="utf-8")
    Path("configs").symlink_to(ROOT / "configs")
    return tmp_path


def test_the_commands_of_the_page(work):
    page = (ROOT / "docs" / "your_data.md").read_text(encoding="utf-8")
    lines = re.findall(r"^python tools/(\w+)\.py (.*?)\s*(?:#.*)?$", page, re.MULTILINE)
    assert [tool for tool, _ in lines] == ["train", "train", "evaluate", "predict", "export", "serve"]
    outcomes = {}
    for number, (tool, words) in enumerate(lines[:-1]):
        more = FEW_STEPS if number == 0 else []
        outcomes[tool] = run_here(tool, *shlex.split(words), *more)
        assert outcomes[tool].status == 0, outcomes[tool].stderr
    assert "the run has already finished, at step 1" in outcomes["train"].stderr
    assert records(outcomes["evaluate"])[0]["n"] == 4
    assert outcomes["predict"].stderr.endswith("weights: runs/mine/best\n")
    assert "The weights `couplet`" in Path("mybundle/README.md").read_text(encoding="utf-8")
    served = load_serve_config("configs/serve.yaml", shlex.split(lines[-1][1])[3::2])
    assert find_models(served)[0][0].folder == Path("mybundle")


def test_the_notebook(work, capsys):
    notebook = json.loads((ROOT / "docs" / "first_steps.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"]).replace("training.max_steps=30", "training.max_steps=2")
            exec(source, names)
    assert paddle_dialog.shipped() == sorted(path.name for path in (ROOT / "pretrained").iterdir())
    assert names["reply"].emotion in ("furious", "angry", "annoyed")  # type: ignore[attr-defined]
    assert Path(str(names["bundle"]), "bundle.json").is_file()
    assert len(capsys.readouterr().out.splitlines()) >= 3
