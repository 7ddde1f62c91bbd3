"""The run's record as text."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddle_dialog.objective import Accuracy, Perplexity
from paddle_dialog.task import Display
from paddle_dialog.training.report import Evaluation, StepReport, TextLog, configure_logging

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


def test_a_classifier_is_told_of_by_its_accuracy(tmp_path: Path) -> None:
    configure_logging(str(tmp_path / "train.log"))
    log = TextLog(Accuracy(), "examples")
    log.step(dataclasses.replace(REPORT, figure=0.91236))
    log.evaluation(Evaluation(500, 0.5, True, Display()))
    step, evaluation = lines(tmp_path / "train.log")
    assert " accuracy 0.9124 lr " in step and " 2346 examples/s " in step
    assert evaluation.endswith("step 500 dev accuracy 0.5000 (best so far)")


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
