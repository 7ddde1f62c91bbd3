"""The pages for readers: links, both languages, commands and notebooks done as they are written, the course."""

from __future__ import annotations

import importlib
import io
import json
import re
import shlex
import tokenize
from pathlib import Path

import matplotlib
import notebooks
import pytest
from command import ROOT, records, run_here

import paddle_dialog
from paddle_dialog.config.typed import sections
from paddle_dialog.serving.server import find_models, load_serve_config
from paddle_dialog.tasks.couplet.config import RulesConfig

CODE = ("paddle_dialog", "tasks", "tests", "tools")
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
PAIRS = [page for page in PAGES if page.name.endswith(".zh.md")]


def name(page):
    return page.name


def prose(page):
    """Return the text of a page without its blocks of code, or that of a notebook's cells of Markdown."""
    text = page.read_text(encoding="utf-8")
    if page in NOTEBOOKS:
        cells = (cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=name)
def test_links_lead_somewhere(page):
    text = prose(page)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if path.startswith(("http://", "https://")):
            continue
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w-]", "", h.lower().replace(" ", "-")) for h in headings}, link


@pytest.mark.parametrize("page", PAIRS, ids=name)
def test_a_chinese_page_has_the_sections_and_commands_of_the_english_one(page):
    def shape(text):
        blocks = re.findall(r"^\s*```\w*\n(.*?)^\s*```$", text, re.MULTILINE | re.DOTALL)
        lines = [re.sub(r"\s*#.*", "", line) for block in blocks for line in block.splitlines()]
        tools = r"(python|bash|curl|paddle-dialog|visualdl|export) "
        commands = [line for line in lines if re.match(tools, line)]
        headings = re.findall(r"^(#+) ", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
        return headings, commands

    english = page.with_name(page.name.replace(".zh.md", ".md")).read_text(encoding="utf-8")
    chinese = page.read_text(encoding="utf-8")
    assert shape(chinese) == shape(english)


def test_the_chinese_table_of_rules_has_all_keys():
    keys = {key.name: key.default for key in next(sections(RulesConfig)).keys}
    text = (ROOT / "docs" / "couplets.zh.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`(?:、`\w+`)*) \| (\S+)", text, re.MULTILINE)
    assert {name: default for names, default in rows for name in re.findall(r"\w+", names)} == keys


@pytest.mark.parametrize("page", [*PAGES[:2], *(ROOT / "docs" / "experiments").glob("*.md")], ids=name)
def test_a_page_of_an_experiment_is_short_and_a_readme_takes_two_screens(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= (80 if page in PAGES[:2] else 120 if page.name == "README.md" else 40)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_named_files_exist(page):
    folders = "paddle_dialog|tasks|tests|configs|tools|docs|deploy"
    for path in re.findall(rf"\b(?:{folders})/[\w/-]+(?:\.\w+)+", page.read_text(encoding="utf-8"), re.ASCII):
        assert path == "tools/NAME.py" or (ROOT / path).exists(), path


def test_the_readmes_show_what_the_weights_that_ship_answer():
    english, chinese = (
        re.findall(r"(?m)^python tools/predict\.py (.+?) +# (.+)$", page.read_text(encoding="utf-8"))
        for page in PAGES[:2]
    )
    assert english == chinese and english
    for arguments, answer in english:
        answered = " ".join(run_here("predict", *shlex.split(arguments)).stdout.split())
        assert re.fullmatch(re.escape(" ".join(answer.split())).replace("…", ".*"), answered), arguments


def test_the_picture_of_the_house_is_true():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = re.search(r"^```\n(paddle_dialog/.*?)^```$", text, re.MULTILINE | re.DOTALL)
    drawn = set()
    for line in picture[1].splitlines():
        for path in re.match(r" *((?:[\w.]+(?:/|\.py) *)+)", line)[1].split():
            inside = "paddle_dialog/" if line.startswith(" ") else ""
            assert (ROOT / inside / path).exists(), path
            drawn.add(path.rstrip("/"))
    packages = {path.parent.name for path in (ROOT / "paddle_dialog").glob("*/__init__.py")}
    assert packages - {"shipped"} <= drawn


def test_comments_and_docstrings_have_single_backticks():
    for path in (path for top in CODE for path in (ROOT / top).rglob("*.py")):
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            prose = token.type == tokenize.COMMENT or token.string.startswith(('"""', 'r"""'))
            assert not prose or not re.search(r"(?<!`)``(?!`)", token.string), f"{path}:{token.start[0]}"


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
