"""A run that is resumed with other settings or data, or used before it has a best model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command import Outcome, run_here
from conftest import Trained

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.training.progress import Plan, Progress, Stop

PAIRS = "春风\t秋雨\n天高\t地远\n山红\t水绿\n月明\t星暗\n"


def train(trained: dict[str, Trained], folder: Path, *more: str) -> Outcome:
    """Train the toy recipe on four couplets, two steps an epoch."""
    settings = [f"output_dir={folder}", "data.batch_size=2", "data.min_count=1", "training.warmup_steps=0"]
    options = [word for setting in settings for word in ("-o", setting)]
    return run_here("train", "-c", trained["lstm"].config, *options, *more)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS, encoding="utf-8")
    return path


def data(path: Path) -> list[str]:
    return ["-o", f"data.train={path}", "-o", f"data.dev={path}"]


def test_forgotten_data_are_not_replaced_by_the_sample(
    trained: dict[str, Trained], tmp_path: Path, pairs: Path
) -> None:
    folder = tmp_path / "run"
    assert train(trained, folder, *data(pairs), "-o", "training.epochs=1").status == 0
    before = (folder / "config.yaml").read_bytes()
    sample = ["-o", "data.train=sample", "-o", "data.dev=sample"]
    line = train(trained, folder, *sample, "-o", "training.epochs=1", "--resume", "auto").error_line()
    assert f"was trained with data.train {pairs}, and is to go on with sample" in line
    assert (folder / "config.yaml").read_bytes() == before


def test_a_resumed_run_tells_what_it_changes_and_ends_with_its_new_epochs(
    trained: dict[str, Trained], tmp_path: Path, pairs: Path
) -> None:
    folder, more = tmp_path / "run", tmp_path / "more.tsv"
    assert train(trained, folder, *data(pairs), "-o", "training.epochs=1").status == 0
    more.write_text(
        PAIRS + "花香\t鸟语\n云淡\t雨浓\n", encoding="utf-8"
    )  # three steps an epoch instead of two
    changed = ["-o", f"data.train={more}", "-o", f"data.dev={pairs}", "-o", "training.epochs=2"]
    resumed = train(trained, folder, *changed, "--resume", "auto")
    assert resumed.status == 0, resumed.stderr
    assert f"changed since the checkpoint: data.train {pairs} → {more}" in resumed.stderr
    assert "changed since the checkpoint: training.epochs 1 → 2" in resumed.stderr
    assert re.search(r"parameters, 5 steps in all", resumed.stderr)
    progress = json.loads((folder / "last" / "progress.json").read_text())
    assert progress["finished"] and progress["step"] == 5 and progress["curve"][-1][0] == 5
    again = train(trained, folder, *changed, "--resume", "auto")
    assert again.status == 0 and "the run has already finished, at step 5" in again.stderr


def test_the_plan_of_a_run_whose_epochs_have_another_length_now() -> None:
    settings = TrainingConfig(epochs=3, accumulate=2)
    assert Plan.going_on(settings, 5, Progress()).total_steps == 9  # two whole steps an epoch, and a rest
    assert Plan.going_on(settings, 5, Progress(epoch=1, batch=2, step=4)).total_steps == 9
    longer = Plan.going_on(settings, 10, Progress(epoch=1, batch=2, step=4))
    assert longer.total_steps == 4 + 4 + 5  # what is left of the second epoch, and the third
    assert Plan.going_on(settings, 3, Progress(epoch=3, step=9)).completion(Progress(step=9)) is Stop.FINISHED


def test_weights_of_a_run_without_a_best_model_are_not_those_that_ship(
    trained: dict[str, Trained], tmp_path: Path, pairs: Path
) -> None:
    folder = tmp_path / "run"
    assert train(trained, folder, *data(pairs), "-o", "training.epochs=1").status == 0
    named = run_here("predict", "-c", trained["lstm"].config, "--weights", folder, "春").error_line()
    assert f"did you mean {folder / 'best'}?" in named
    (folder / "best").rename(tmp_path / "elsewhere")
    line = run_here("predict", "-c", trained["lstm"].config, "-o", f"output_dir={folder}", "春").error_line()
    assert f"{folder}: has no 'best' yet; name --weights {folder / 'last'}" in line


def test_a_warm_up_longer_than_the_run_is_told(
    trained: dict[str, Trained], tmp_path: Path, pairs: Path
) -> None:
    told = train(trained, tmp_path / "run", *data(pairs), "-o", "training.warmup_steps=9").stderr
    assert "training.warmup_steps is 9 and the run has" in told
