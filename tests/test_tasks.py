"""Tasks: those that ship go train → evaluate → predict → export by their recipes; and tasks of one's own."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import ROOT, records, run, run_here
from serving_toys import running

import paddle_dialog
from paddle_dialog import tasks
from paddle_dialog.recipes import find_task, task_names
from paddle_dialog.serving.app import create_app
from paddle_dialog.serving.config import ModelSource, ServeConfig
from paddle_dialog.serving.endpoint import WordFilter
from paddle_dialog.serving.server import find_models, load_models

SMALL = {
    "transformer": "width=16 num_heads=2 inner_width=32 encoder_layers=1 decoder_layers=1",
    "lstm": "embedding_size=8 hidden_size=8 num_layers=1",
    "causal": "width=16 num_heads=2 inner_width=32 num_layers=1",
}
LIKELY = "n perplexity"  # of all tasks that write text
EMPATHETIC = "context emotion emotions predictions"


@dataclass(frozen=True)
class Case:
    """A recipe made small, what is asked, and the keys of what is printed.

    Args:
        sizes: one of `SMALL`.
        inputs: texts.
        record: keys of an answer.
        metrics: some of `evaluate`'s.
        settings: further ones.
        arguments: of the task's own.
    """

    recipe: str
    sizes: str
    inputs: tuple[str, ...]
    record: str
    metrics: str
    settings: str = ""
    arguments: tuple[str, ...] = ()


POEM, TALK = "begin predictions", "decoding.max_length=6 emotion.ngram_buckets=512"
CASES = [
    Case("couplet_sample", "transformer", ("天山春红", "风高来"), "first predictions", f"bleu form {LIKELY}"),
    Case("couplet_lstm", "lstm", ("天山春红",), "first predictions", f"bleu form {LIKELY}"),
    Case(
        *("poem", "causal", ("明月", "白日"), POEM, f"bits_per_character perplexity_titled form {LIKELY}"),
        settings="data.min_count=1 decoding.max_length=30",
    ),
    Case("poem", "causal", ("秋",), POEM, LIKELY, "data.min_count=1", ("--form", "五绝")),
    Case(
        *("translation", "transformer", ("学而时习之。",), "source predictions", f"bleu {LIKELY}"),
        settings="data.min_count=1",
    ),
    Case(
        *("translation", "lstm", ("学习知识。",), "source predictions", f"bleu chrf copying {LIKELY}"),
        settings="model={name:␣lstm_attention} data.min_count=1 data.reverse=true",
    ),
    Case(
        *("sentiment_zh", "lstm", ("房间很干净。", "很差！"), "text label probability"),
        metrics="n accuracy f1 calibration_error confusion unclear",
        settings="linear.buckets=4096",
    ),
    Case(
        *("sentiment_en", "transformer", ("a warm film",), "text label probability", "n accuracy"),
        settings="model={name:␣transformer} linear.buckets=4096",
    ),
    Case(
        *("empathetic_zh", "causal", ("我養了十年的貓昨天走了",), EMPATHETIC),
        metrics=f"emotion_accuracy common_openings {LIKELY}",
        settings=f"data.piece_count=500 model.copy_size=4 {TALK}",
    ),
    Case(
        *("empathetic_transformer", "transformer", ("I lost my dog.",), EMPATHETIC),
        metrics=f"emotion_accuracy bleu distinct_1 {LIKELY}",
        settings=TALK,
    ),
]


def texts(answer):
    """Return what an answer says, without its scores."""
    return [prediction["text"] for prediction in answer.get("predictions", ())] or [answer.get("label")]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.recipe}-{case.sizes}" for case in CASES])
def test_a_task_goes_from_its_sample_to_a_bundle_that_answers(case, tmp_path):
    sample = f"sample_{case.recipe[-2:]}" if case.recipe.startswith("sentiment") else "sample"
    settings = [setting.replace("␣", " ") for setting in case.settings.split()]
    settings += [f"model.{size}" for size in SMALL[case.sizes].split()]
    steps = "max_steps=2 eval_every=2 save_every=2 warmup_steps=1"
    settings += [f"training.{each}" for each in steps.split()]
    settings += [f"data.train={sample}", f"data.dev={sample}", f"output_dir={tmp_path / 'run'}"]
    options = [word for setting in settings for word in ("-o", setting)]
    trained = run_here("train", "-c", case.recipe, *options)
    assert trained.status == 0, trained.stderr
    assert trained.stdout.startswith(f"{tmp_path / 'run'}: step 2, best dev ")
    written = tmp_path / "answers.jsonl"
    (metrics,) = records(
        run_here("evaluate", "--weights", tmp_path / "run", "--json", "--predictions", written)
    )
    assert {*case.metrics.split()} <= metrics.keys() and metrics["n"] > 5
    assert len(written.read_text("utf-8").splitlines()) > 5
    asked = ("--json", *case.arguments, *case.inputs)
    answers = records(run_here("predict", "--weights", tmp_path / "run", *asked))
    assert len(answers) == len(case.inputs)
    assert all(set(answer) - {"unsure", "written_to"} == {*case.record.split()} for answer in answers)
    through_paddle = records(run_here("predict", "--weights", tmp_path / "run", "--paddle", *asked))
    assert [texts(answer) for answer in through_paddle] == [texts(answer) for answer in answers]
    exported = run_here("export", "--weights", tmp_path / "run", "--output", tmp_path / "out")
    assert exported.status == 0, exported.stderr
    again = records(run_here("predict", "--weights", tmp_path / "out", *asked))
    assert [set(answer) for answer in again] == [set(answer) for answer in answers]
    predictor = paddle_dialog.load(tmp_path / "out")
    assert len(predictor.predict(case.inputs)) == len(case.inputs)
    printed = run_here("predict", "--weights", tmp_path / "out", *case.arguments, *case.inputs)
    shown = predictor.format_record(json.loads(json.dumps(again[0])))
    assert printed.stdout.startswith(shown)


def test_no_task_is_left_out():
    covered = {find_task(name).name for name in task_names()}
    assert covered == {case.recipe.partition("_")[0] for case in CASES}


WORDS = {
    "weather": "snow rain wind storm frost sun",
    "sport": "goal match cup race coach medal",
    "markets": "shares bonds prices yen bank profit",
}


def files(page):
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
        words = {section: WORDS[section].split() for section in WORDS}
        texts = [" ".join([*draw.choices([*words[s], "today", "new"], k=5), words[s][0]]) for s in sections]
        lines = [f"{section}\t{text}\n" for section, text in zip(sections, texts, strict=True)]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def reader(tool, folder, *arguments, stdin=b""):
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
    said = "odd.tsv:2: 'wether' is no section; write one of weather, sport, markets"
    assert wrong.error_line().endswith(said)
    unknown = reader("train", task, "-o", "model.widht=3")
    assert unknown.error_line().endswith("model.widht: unknown key; did you mean width?")
    assert "size of the embeddings" in reader("train", task, "--help-config", "model").stdout


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """Yield the recipe of a trained model of the task, whose folder lies among others of a user's own."""
    folder = tmp_path_factory.mktemp("made_up")
    page = shutil.copytree(ROOT / "tests" / "made_up" / "echo", folder / "tasks" / "echo") / "page"
    page.mkdir()
    for name, content in files("tabs.md").items():
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
    for name in [name for name in sys.modules if name.startswith("paddle_dialog.tasks.echo")]:
        del sys.modules[name]


def predict(recipe, *arguments):
    return run_here("predict", "-c", recipe, *arguments)


def test_it_brings_its_arguments(recipe):
    shown = predict(recipe, "--help").stdout
    assert "--shout" in shown and "answer in capitals" in shown and "--template" not in shown
    assert predict(recipe, "hi", "--shout", "you", "--times", 2).stdout == "HI HI\nYOU YOU\n"
    assert predict(recipe, "hi", "--json").stdout == '{"echo": "hi"}\n'
    assert "unrecognized arguments: --template" in predict(recipe, "hi", "--template", "x").error_line()
    assert "invalid int value: 'x'" in predict(recipe, "hi", "--times", "x").error_line()
    assert "unrecognized arguments: --shout" in predict(Path("couplet"), "春", "--shout").error_line()


def test_it_brings_its_addresses_and_its_tab(recipe):
    config = ServeConfig(models={"echo": ModelSource(config=str(recipe))})
    found, missing = find_models(config)
    endpoints = [endpoint for model in found for endpoint in model.endpoints]
    app = create_app(config, endpoints, load_models(found, WordFilter(), "cpu"))
    with running(app) as client:
        assert client.post("/v1/echo", json={"text": "hi"}).json() == {"echo": "hi"}
        assert client.post("/v1/echo/reversed", json={"text": "hi"}).json() == {"echo": "ih"}
        paths = client.get("/openapi.json").json()["paths"]
        (card,) = client.get("/v1/models").json()["models"]
        page, script = client.get("/").text, client.get("/tasks/echo/all.js").text
    assert len({paths[path]["post"]["operationId"] for path in ("/v1/echo", "/v1/echo/reversed")}) == 2
    assert card["path"] == "/v1/echo" and card["further"] == {"/v1/echo/reversed": {"reversed": True}}
    assert missing == [] and (card["task"], card["family"], card["parameters"]) == ("echo", "parity", 6)
    assert '<form id="echo-form" novalidate>' in page and "function start()" in script


HANZI = "山水云月花鸟风松"
TRANSFORMER = """
model:
  {name: transformer, width: 64, num_heads: 4, inner_width: 128, encoder_layers: 1, decoder_layers: 2,
   max_positions: 16, dropout: 0.0}
training: {learning_rate: 0.003, schedule: cosine, warmup_steps: 50, clip_norm: 1.0, save_every: 1000, MORE}
"""
RECIPES = {
    "lstm_attention": """
model: {name: lstm_attention, embedding_size: 32, hidden_size: 64, num_layers: 1, dropout: 0.0}
training: {epochs: 12, learning_rate: 0.01, schedule: cosine, warmup_steps: 20, save_every: 1000}
""",
    "transformer": TRANSFORMER.replace("MORE", "epochs: 24, eval_every: 768"),
    "transformer with Muon": TRANSFORMER.replace("MORE", "epochs: 16, eval_every: 512, optimizer: muon"),
}
COMMON = """
task: couplet
data: {{train: {folder}/train.tsv, dev: {folder}/dev.tsv, max_length: 8, batch_size: 64}}
decoding: {{beam_size: 4, max_length: 8}}
rules: {{enabled: false}}
output_dir: {folder}/run
"""


@pytest.fixture(scope="module")
def lines():
    """Return 2,000 different lines to learn from, and 100 others."""
    generator = random.Random(7)
    drawn = ("".join(generator.choices(HANZI, k=generator.randint(3, 6))) for _ in range(4000))
    found = list(dict.fromkeys(drawn))
    return found[:2000], found[2000:2100]


@pytest.mark.parametrize("recipe", RECIPES)
def test_lines_are_written_backwards(recipe, lines, tmp_path):
    train, dev = lines
    assert len(dev) == 100 and not set(train) & set(dev)
    for name, part in (("train", train), ("dev", dev)):
        text = "".join(f"{line}\t{line[::-1]}\n" for line in part)
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    config = tmp_path / "toy.yaml"
    config.write_text(COMMON.format(folder=tmp_path) + RECIPES[recipe], encoding="utf-8")

    trained = run_here("train", "-c", config)
    assert trained.status == 0, trained.stderr
    assert float(re.search(r"best dev perplexity ([\d.]+)", trained.stdout)[1]) < 1.05

    for strategy in ("greedy", "beam"):
        answered = run_here("predict", "-c", config, "--json", "-o", f"decoding.strategy={strategy}", *dev)
        answers = [json.loads(line)["predictions"][0]["text"] for line in answered.stdout.splitlines()]
        assert answers == [line[::-1] for line in dev], strategy


def test_a_varied_task_trains_and_two_runs_are_compared(tmp_path):
    for name, text in files("vary.md").items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text.replace("configs/", f"{ROOT}/configs/"), encoding="utf-8")
    environment, recipe = {"PADDLE_DIALOG_TASKS": str(tmp_path)}, str(tmp_path / "focal.yaml")
    output = ("-o", f"output_dir={tmp_path / 'run'}")
    trained = run("train", "-c", recipe, "-o", "training.max_steps=2", *output, environment=environment)
    assert trained.status == 0, trained.stderr
    predictions = [tmp_path / "couplets.jsonl", tmp_path / "reviews.jsonl"]
    written = (*output, "--predictions", str(predictions[0]))
    evaluated = run("evaluate", "-c", recipe, *written, environment=environment)
    assert evaluated.status == 0, evaluated.stderr
    run_here("evaluate", "-c", "sentiment_zh", "--data", "sample_zh", "--predictions", predictions[1])
    for path, said in zip(predictions, ("BLEU ", "accuracy "), strict=True):
        compare = [sys.executable, str(tmp_path / "compare.py"), str(path), str(path)]
        ended = subprocess.run(compare, capture_output=True, encoding="utf-8")
        assert ended.stdout.startswith(said), ended.stderr
