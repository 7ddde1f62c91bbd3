"""What a run reports, log and curves for VisualDL; and pictures: the confusion matrix, and where it is written."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import re

import numpy as np
import pytest
from command import run_here, written
from empathetic_toys import save_model
from matplotlib import image as images
from visualdl import LogReader
from visualdl.server import lib
from visualdl.server.data_manager import DataManager

from paddle_dialog.errors import UserError
from paddle_dialog.figures import FigureFolder, draw_confusion_matrix
from paddle_dialog.metrics import Accuracy, Perplexity, confusion_matrix
from paddle_dialog.task import Display
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.evaluation import BY_KINSHIP, emotion_report
from paddle_dialog.training.progress import Report, configure_logging

TIME = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2} "


@pytest.fixture(autouse=True)
def restore_logging():
    """Leave no handler of a test's folder behind."""
    logger = logging.getLogger("paddle_dialog")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    logger.handlers = []
    yield
    for handler in logger.handlers:
        handler.close()
    logger.handlers, logger.propagate = handlers, propagate
    logger.setLevel(level)


@dataclasses.dataclass
class Inner:
    rate: float = 0.5
    tied: bool = True
    limit: int | None = None


@dataclasses.dataclass
class Settings:
    name: str = "toy"
    model: Inner = dataclasses.field(default_factory=Inner)


OPEN: list[Report] = []


def report_in(folder, objective=None, unit="tokens"):
    OPEN.append(Report(folder, Settings(), objective or Perplexity(), unit))
    return OPEN[-1]


def figures(**changed):
    return {
        "loss": 3.21987,
        "perplexity": 25.034,
        "learning_rate": 0.00125,
        "gradient_norm": 4.5678,
        "tokens_per_second": 2345.6,
        "reader_share": 0.0123,
        "skipped_steps": 0.0,
        **changed,
    }


def lines(path):
    return [re.sub("^" + TIME, "", line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lines_of_the_log(tmp_path, capsys):
    for _ in range(2):  # a log file is appended to, and each line is written once
        configure_logging(str(tmp_path / "train.log"))
        report = report_in(tmp_path / "vdl")
        report.step(1500, "6000 epoch 1.25", figures(), 3725.4)
    report.step(1501, "6000 epoch 1.25", figures(skipped_steps=2.0), 3725.4)
    report.evaluation(500, 99.12345, True, Display(["春风 → 秋雨", "two"]))
    report.evaluation(1000, 120.0, False, Display([], {"emotion_accuracy": 0.4}))
    expected = (
        "step 1500/6000 epoch 1.25 loss 3.2199 perplexity 25.034 lr 1.25e-03 grad norm 4.57 "
        "2346 tokens/s reader 1.2% eta 1:02:05"
    )
    assert lines(tmp_path / "train.log") == [
        expected,
        expected,
        expected.replace("1500", "1501") + " skipped 2",
        "step 500 dev perplexity 99.123 (best so far)",
        "  春风 → 秋雨",
        "  two",
        "step 1000 dev perplexity 120.000 emotion_accuracy 0.4000",
    ]
    captured = capsys.readouterr()
    assert captured.err.count(expected) == 2 and captured.out == ""
    assert not logging.getLogger("matplotlib.font_manager").isEnabledFor(logging.INFO)


class Page:
    """What VisualDL's server sends its page about a folder."""

    def __init__(self, folder):
        while OPEN:
            OPEN.pop().close()
        self.reader = LogReader(str(folder))
        self.reader.data_manager = DataManager()  # the default one is shared by all readers of a process
        self.reader.readers = {}
        self.reader.load_new_data()

    @property
    def runs(self):
        return lib.get_runs(self.reader)

    def curve(self, tag):
        points = lib.get_scalar(self.reader, self.runs[0], tag)
        return [(step, value) for _, step, value in points]

    def texts(self, tag):
        items = self.reader.data_manager.get_reservoir("text").get_items(self.runs[0], tag.replace("/", "%"))
        return [(item.id, item.text.encoded_text_string) for item in items]

    def hyper_parameters(self):
        return lib.get_hparam_list(self.reader)


@pytest.fixture
def log(caplog):
    """Yield the library's log, also where another test has cut it off from the root logger."""
    logger = logging.getLogger("paddle_dialog")
    propagate, logger.propagate = logger.propagate, True
    yield caplog
    logger.propagate = propagate


@pytest.mark.parametrize(("objective", "unit"), [(Perplexity(), "tokens"), (Accuracy(), "examples")])
def test_curves_texts_and_hyper_parameters_are_on_the_page(tmp_path, objective, unit):
    report, name = report_in(tmp_path, objective, unit), objective.name
    for step in (1, 2, 3):
        norm = math.nan if step == 2 else 1.5  # which leaves a gap
        more = {name: 0.5, f"{unit}_per_second": 10.0}
        report.step(step, "9", figures(loss=float(step), gradient_norm=norm, **more), 1.0)
    report.evaluation(3, 12.5, True, Display(["春风 → 秋雨", "second"], {"emotion_accuracy": 0.25}))
    page = Page(tmp_path)

    assert page.runs == [str(tmp_path)]
    assert page.curve("train/loss") == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert page.curve("train/gradient_norm") == [(1, 1.5), (3, 1.5)]
    for other, value in (figures() | more).items():
        if other not in ("loss", "gradient_norm"):
            assert page.curve(f"train/{other}")[0] == (1, pytest.approx(value))
    assert page.curve(f"dev/{name}") == [(3, 12.5)]
    assert page.curve("dev/emotion_accuracy") == [(3, 0.25)]
    assert page.texts("examples/0") == [(3, "春风 → 秋雨")] and page.texts("examples/1") == [(3, "second")]
    (trial,) = page.hyper_parameters()
    assert trial["hparams"] == {"name": "toy", "model/rate": 0.5, "model/tied": "True", "model/limit": "None"}
    assert trial["metrics"] == {f"dev/{name}": 12.5}


def test_a_resumed_run_continues_its_curves_as_one_run(tmp_path):
    for step, perplexity in ((10, 20.0), (20, 10.0)):
        report = report_in(tmp_path)
        report.step(step, "99", figures(loss=step / 10), 1.0)
        report.evaluation(step, perplexity, True, Display())
        report.close()
    page = Page(tmp_path)
    assert page.runs == [str(tmp_path)] and len(list(tmp_path.iterdir())) == 1
    assert page.curve("train/loss") == [(10, 1.0), (20, 2.0)]
    assert page.curve("dev/perplexity") == [(10, 20.0), (20, 10.0)]
    (trial,) = page.hyper_parameters()
    assert trial["hparams"]["name"] == "toy" and trial["metrics"] == {"dev/perplexity": 10.0}


def test_a_folder_that_cannot_be_made_gives_one_warning(tmp_path, log):
    (tmp_path / "file").write_text("in the way")
    report_in(tmp_path / "file" / "vdl").step(1, "9", figures(), 1.0)
    assert [record.levelname for record in log.records].count("WARNING") == 1


REX = {"context": ["my dog died .", "oh no !", "he was called Rex ."], "target": "Rex was good ."}
DIALOGUES = [
    REX | {"emotion": "sad"},
    {"context": ["i won $ 5 $ or $_^"], "target": "congratulations !", "emotion": "proud"},
    {"context": ["someone stole my 🏝"], "target": "that is awful .", "emotion": "sad"},
    {"context": ["hello"], "target": "hi"},
]


def test_confusions_are_counted_by_annotated_and_predicted_label():
    assert sorted(BY_KINSHIP) == sorted(EMOTIONS)
    sad, proud, joyful = (EMOTIONS.index(label) for label in ("sad", "proud", "joyful"))
    predicted, gold = np.array([sad, joyful, joyful, proud]), np.array([sad, sad, sad, proud])
    counts = confusion_matrix(predicted, gold, len(EMOTIONS))
    assert counts[sad, sad] == 1 and counts[sad, joyful] == 2 and counts[proud, proud] == 1
    report = emotion_report(counts)
    assert report["n"] == 4 == counts.sum() and report["accuracy"] == 0.5
    assert list(report["emotions"]) == ["proud", "sad"]
    expected = {
        "n": 3,
        "accuracy": pytest.approx(1 / 3),
        "predicted": 1,
        "taken_for": {"joyful": 2, "sad": 1},
    }
    assert report["emotions"]["sad"] == expected


def test_a_right_prediction_darkens_the_diagonal_and_a_wrong_one_its_cell():
    darkest = (8, 48, 107)  # of matplotlib's "Blues"

    def quarters(counts):
        image = draw_confusion_matrix(np.array(counts), ["ab", "cd"], "title")
        dark = np.abs(image.astype(int) - darkest).max(axis=2) <= 8
        rows, columns = np.nonzero(dark[:, : int(image.shape[1] * 0.7)])  # without the colour scale
        return np.array([rows.mean(), columns.mean()])

    upper, lower = quarters([[3, 0], [0, 0]]), quarters([[0, 0], [0, 3]])
    right = quarters([[0, 3], [0, 0]])
    assert upper[0] < lower[0] and upper[1] < lower[1]
    assert right[0] == pytest.approx(upper[0], abs=3) and right[1] == pytest.approx(lower[1], abs=3)


def test_a_picture_is_a_png_and_in_visualdl(tmp_path):
    folder, picture = FigureFolder(tmp_path / "new" / "figures"), np.zeros((3, 5, 3), dtype=np.uint8)
    picture[1, 2] = (255, 0, 128)
    folder.add("dot", picture)
    folder.add_json("numbers", {"n": 1, "label": "悲"})
    path = tmp_path / "new" / "figures" / "dot.png"
    np.testing.assert_array_equal((images.imread(path)[:, :, :3] * 255).round().astype(int), picture)
    assert folder.written == [path, path.with_name("numbers.json")]
    assert json.loads(folder.written[1].read_text(encoding="utf-8")) == {"n": 1, "label": "悲"}
    folder.close()
    (log,) = (path.parent / "vdl").iterdir()
    assert "dot" in LogReader(file_path=str(log)).get_tags()["image"]
    with pytest.raises(UserError, match="figures cannot be written"):
        FigureFolder(path)


def test_evaluate_draws_the_emotions(tmp_path):
    recipe, folder = save_model(tmp_path, decoding={"max_length": 3}), tmp_path / "f"
    data = written(tmp_path, "\n".join(map(json.dumps, DIALOGUES)))
    outcome = run_here("evaluate", "-c", recipe, "--data", data, "--figures", folder, "--json")
    assert outcome.status == 0, outcome.stderr
    assert {path.name for path in folder.iterdir()} == {"emotion_confusion.png", "emotions.json", "vdl"}
    report = json.loads((folder / "emotions.json").read_text(encoding="utf-8"))
    assert report["accuracy"] == pytest.approx(json.loads(outcome.stdout)["emotion_accuracy"])
    assert {label: row["n"] for label, row in report["emotions"].items()} == {"proud": 1, "sad": 2}
    refused = run_here("evaluate", "-c", recipe, "--figures", data)  # before the work
    assert "figures cannot be written there" in refused.error_line() and refused.stdout == ""
