"""What a run tells: the log, and curves and pictures for VisualDL."""

from __future__ import annotations

import dataclasses
import io
import logging
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from visualdl import LogReader
from visualdl.server import lib
from visualdl.server.data_manager import DataManager

from paddle_dialog.objective import Accuracy, Objective, Perplexity
from paddle_dialog.task import Display
from paddle_dialog.training.report import Curves, Evaluation, StepReport, TextLog, configure_logging

TIME = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2} "
REPORT = StepReport(1500, 6000, 1.25, 3.21987, 25.034, 0.00125, 4.5678, 2345.6, 0.0123, 3725.4)


@pytest.fixture(autouse=True)
def restore_logging() -> Iterator[None]:
    """Leave no handler of a test's folder behind."""
    logger = logging.getLogger("paddle_dialog")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    logger.handlers = []
    yield
    for handler in logger.handlers:
        handler.close()
    logger.handlers, logger.propagate = handlers, propagate
    logger.setLevel(level)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_step_line(tmp_path: Path) -> None:
    configure_logging(str(tmp_path / "train.log"))
    TextLog(Perplexity(), "tokens").step(REPORT)
    (line,) = lines(tmp_path / "train.log")
    expected = (
        "step 1500/6000 epoch 1.25 loss 3.2199 perplexity 25.034 lr 1.25e-03 grad norm 4.57 "
        "2346 tokens/s reader 1.2% eta 1:02:05"
    )
    assert re.fullmatch(TIME + re.escape(expected), line)


def test_evaluation_lines(tmp_path: Path) -> None:
    configure_logging(str(tmp_path / "train.log"))
    log = TextLog(Perplexity(), "tokens")
    log.evaluation(Evaluation(500, 99.12345, True, Display(["春风 → 秋雨", "two"])))
    log.evaluation(Evaluation(1000, 120.0, False, Display([])))
    log.evaluation(Evaluation(1500, 80.0, True, Display([], scalars={"emotion_accuracy": 0.4})))
    texts = [re.sub("^" + TIME, "", line) for line in lines(tmp_path / "train.log")]
    assert texts == [
        "step 500 dev perplexity 99.123 (best so far)",
        "  春风 → 秋雨",
        "  two",
        "step 1000 dev perplexity 120.000",
        "step 1500 dev perplexity 80.000 emotion_accuracy 0.4000 (best so far)",
    ]


def test_log_file_is_appended_to_and_each_line_is_written_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.log"
    for _ in range(3):
        configure_logging(str(path))
        TextLog(Perplexity(), "tokens").step(REPORT)
    assert len(lines(path)) == 3
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 3 and captured.out == ""


def test_without_a_file_lines_go_to_stderr_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    TextLog(Perplexity(), "tokens").step(REPORT)
    assert "step 1500/6000" in capsys.readouterr().err


def test_matplotlib_looking_for_fonts_is_not_told() -> None:
    configure_logging()
    assert not logging.getLogger("matplotlib.font_manager").isEnabledFor(logging.INFO)
    assert logging.getLogger("matplotlib.font_manager").isEnabledFor(logging.WARNING)


@dataclasses.dataclass
class Inner:
    rate: float = 0.5
    tied: bool = True
    limit: int | None = None


@dataclasses.dataclass
class Settings:
    name: str = "toy"
    model: Inner = dataclasses.field(default_factory=Inner)


SINKS: list[Curves] = []  # that are open


def sink_in(folder: Path, objective: Objective | None = None, unit: str = "tokens") -> Curves:
    SINKS.append(Curves(folder, Settings(), objective or Perplexity(), unit))
    return SINKS[-1]


def report(step: int, loss: float = 2.0, gradient_norm: float = 1.5) -> StepReport:
    return StepReport(step, 100, 0.5, loss, math.exp(loss), 1e-3, gradient_norm, 1000.0, 0.25, 60.0)


def evaluation(step: int, perplexity: float, heat_map: bool = False) -> Evaluation:
    texts = [f"春风 → 秋雨 at {step}", "second"]
    attention = np.array([[0.9, 0.1], [0.2, 0.8]])
    maps = {"attention": attention, "copy": attention / 2} if heat_map else {}
    display = Display(texts, maps, ["秋", "雨"], ["春", "风"], {"emotion_accuracy": 1 / 4})
    return Evaluation(step, perplexity, True, display)


class Page:
    """What VisualDL's server tells its page of a folder."""

    def __init__(self, folder: Path) -> None:
        while SINKS:
            SINKS.pop().close()
        self.reader = LogReader(str(folder))
        self.reader.data_manager = DataManager()  # the default one is shared by all readers of a process
        self.reader.readers = {}
        self.reader.load_new_data()

    @property
    def runs(self) -> list[str]:
        return lib.get_runs(self.reader)

    def curve(self, tag: str) -> list[tuple[int, float]]:
        points = lib.get_scalar(self.reader, self.runs[0], tag)
        return [(step, value) for _, step, value in points]

    def texts(self, tag: str) -> list[tuple[int, str]]:
        items = self.reader.data_manager.get_reservoir("text").get_items(self.runs[0], tag.replace("/", "%"))
        return [(item.id, item.text.encoded_text_string) for item in items]

    def hyper_parameters(self) -> list[dict[str, Any]]:
        return lib.get_hparam_list(self.reader)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Yield the library's log, also where another test has cut it off from the root logger."""
    logger = logging.getLogger("paddle_dialog")
    propagate, logger.propagate = logger.propagate, True
    yield caplog
    logger.propagate = propagate


def test_curves_texts_and_hyper_parameters_are_on_the_page(tmp_path: Path) -> None:
    sink = sink_in(tmp_path)
    for step in (1, 2, 3):
        sink.step(report(step, loss=float(step)))
    sink.evaluation(evaluation(3, 12.5))
    page = Page(tmp_path)

    assert page.runs == [str(tmp_path)]
    assert page.curve("train/loss") == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert page.curve("train/gradient_norm") == [(1, 1.5), (2, 1.5), (3, 1.5)]
    assert page.curve("train/tokens_per_second")[0] == (1, 1000.0)
    assert page.curve("train/reader_share")[0] == (1, 0.25)
    assert page.curve("train/learning_rate")[0] == (1, pytest.approx(1e-3))
    assert page.curve("train/perplexity")[0] == (1, pytest.approx(math.e))
    assert page.curve("dev/perplexity") == [(3, 12.5)]
    assert page.curve("dev/emotion_accuracy") == [(3, 0.25)]
    assert page.texts("examples/0") == [(3, "春风 → 秋雨 at 3")]
    assert page.texts("examples/1") == [(3, "second")]
    (trial,) = page.hyper_parameters()
    assert trial["hparams"] == {"name": "toy", "model/rate": 0.5, "model/tied": "True", "model/limit": "None"}
    assert trial["metrics"] == {"dev/perplexity": 12.5}


def test_curves_bear_the_name_of_the_objective(tmp_path: Path) -> None:
    sink = sink_in(tmp_path, Accuracy(), "examples")
    sink.step(report(1))
    sink.evaluation(evaluation(1, 0.75))
    page = Page(tmp_path)
    assert page.curve("dev/accuracy")[0] == (1, 0.75)
    assert page.curve("train/accuracy")[0] == (1, pytest.approx(math.exp(2.0)))
    assert page.curve("train/examples_per_second") == [(1, 1000.0)]
    assert page.hyper_parameters()[0]["metrics"] == {"dev/accuracy": 0.75}


def test_heat_map_is_the_picture_that_was_drawn(tmp_path: Path) -> None:
    from paddle_dialog.figures.charts import draw_heat_map

    result = evaluation(7, 3.0, heat_map=True)
    sink_in(tmp_path).evaluation(result)
    page = Page(tmp_path)
    display = result.display
    for name in ("attention", "copy"):
        content = lib.get_individual_image(page.reader, page.runs[0], name, 0)
        shown = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
        drawn = draw_heat_map(display.heat_maps[name], display.rows, display.columns, name)
        np.testing.assert_array_equal(shown, drawn)


def test_a_value_that_is_not_a_number_leaves_a_gap(tmp_path: Path) -> None:
    sink = sink_in(tmp_path)
    sink.step(report(1, gradient_norm=math.nan))
    sink.step(report(2, gradient_norm=4.0))
    assert Page(tmp_path).curve("train/gradient_norm") == [(2, 4.0)]


def test_resumed_run_continues_its_curves_as_one_run(tmp_path: Path) -> None:
    sink = sink_in(tmp_path)
    sink.step(report(10, loss=3.0))
    sink.evaluation(evaluation(10, 20.0))
    sink.close()
    resumed = sink_in(tmp_path)
    resumed.step(report(20, loss=2.0))
    resumed.evaluation(evaluation(20, 10.0))
    page = Page(tmp_path)

    assert page.runs == [str(tmp_path)]
    assert len(list(tmp_path.iterdir())) == 1
    assert page.curve("train/loss") == [(10, 3.0), (20, 2.0)]
    assert page.curve("dev/perplexity") == [(10, 20.0), (20, 10.0)]
    (trial,) = page.hyper_parameters()
    assert trial["metrics"] == {"dev/perplexity": 10.0}


def test_resumed_in_another_folder_has_its_hyper_parameters(tmp_path: Path) -> None:
    sink_in(tmp_path / "vdl").evaluation(evaluation(60, 5.0))
    (trial,) = Page(tmp_path).hyper_parameters()
    assert trial["hparams"]["name"] == "toy"


def test_a_folder_that_cannot_be_made_gives_one_warning(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    sink = sink_in(tmp_path / "file" / "vdl")
    sink.step(report(1))
    assert len(log.records) == 1
