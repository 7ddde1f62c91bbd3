"""Folders that cannot be used: damaged bundles, runs that cannot be resumed, places that cannot be written."""

import json
import shutil

import pytest
from command import run_here

FIRST = "天山春红风"


@pytest.fixture
def damaged(lstm, tmp_path):
    """Return a copy of a good bundle, to be spoilt."""
    return shutil.copytree(lstm.folder / "best", tmp_path / "bundle")


def weights_error(lstm, folder, *arguments):
    outcome = run_here("predict", "-c", lstm.config, "--weights", folder, FIRST, *arguments)
    assert outcome.stdout == ""
    return outcome.error_line()


def test_a_truncated_checkpoint(lstm, damaged):
    file = damaged / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert "model.safetensors: is damaged" in weights_error(lstm, damaged)
    file.unlink()
    assert "the bundle is incomplete" in weights_error(lstm, damaged)


def test_a_folder_that_is_no_bundle(lstm, tmp_path):
    assert "is not a bundle (no bundle.json in it)" in weights_error(lstm, tmp_path)
    (tmp_path / "bundle.json").write_text("[]")
    assert "not a bundle's manifest" in weights_error(lstm, tmp_path)
    (tmp_path / "bundle.json").write_text('{"format": 99}')
    assert "has format 99" in weights_error(lstm, tmp_path)


def test_a_model_of_another_task(lstm, damaged):
    manifest = json.loads((damaged / "bundle.json").read_text())
    (damaged / "bundle.json").write_text(json.dumps(manifest | {"task": "empathetic"}))
    assert "is a model of the task 'empathetic', and the config is of 'couplet'" in weights_error(
        lstm, damaged
    )


def test_a_model_that_the_decoding_settings_do_not_fit(trained):
    lstm, transformer = trained["lstm"], trained["transformer"]
    error = weights_error(lstm, transformer.folder / "best", "-o", "decoding.max_length=16")
    assert "decoding.max_length must be below model.max_positions (16)" in error


def test_resuming_a_damaged_run_takes_the_checkpoint_before(lstm, tmp_path):
    folder = shutil.copytree(lstm.folder, tmp_path / "run")
    for name in ("last", "last.previous"):
        (folder / name / "optimizer.safetensors").write_bytes(b"")
    before = {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".log"
    }
    outcome = run_here("train", "-c", lstm.config, "-o", f"output_dir={folder}", "--resume", "auto")
    assert "optimizer.safetensors: is damaged" in outcome.error_line()
    assert before == {path: path.read_bytes() for path in before}


def test_a_finished_model_is_nothing_to_resume(lstm, tmp_path):
    resume = ("--resume", lstm.folder / "best", "-o", f"output_dir={tmp_path}/run")
    assert "no training state" in run_here("train", "-c", lstm.config, *resume).error_line()
    missing = run_here("train", "-c", lstm.config, "--resume", "nowhere", "-o", f"output_dir={tmp_path}/run")
    assert "--resume nowhere: no such folder" in missing.error_line()


def test_two_runs_do_not_share_a_folder(trained):
    lstm, transformer = trained["lstm"], trained["transformer"]
    outcome = run_here("train", "-c", lstm.config, "--resume", transformer.folder)
    assert "already holds another run" in outcome.error_line()


@pytest.mark.parametrize("name", ["file/run", "file"])
def test_an_output_folder_that_cannot_be_written(lstm, tmp_path, name):
    (tmp_path / "file").write_text("")
    outcome = run_here("train", "-c", lstm.config, "-o", f"output_dir={tmp_path / name}")
    assert f"output_dir: {tmp_path / name}: cannot be written to" in outcome.error_line()
    assert (tmp_path / "file").read_text() == ""


def test_predictions_that_cannot_be_written_are_told_before_the_work(lstm, tmp_path):
    for place in (tmp_path, tmp_path / "none" / "out.jsonl"):
        outcome = run_here("evaluate", "-c", lstm.config, "--predictions", place)
        assert f"{place}: cannot be written" in outcome.error_line()


def test_a_failed_evaluation_leaves_earlier_predictions_alone(lstm, tmp_path):
    earlier, bad = tmp_path / "out.jsonl", tmp_path / "bad.tsv"
    earlier.write_text("earlier")
    bad.write_text("天山\n", encoding="utf-8")
    run_here("evaluate", "-c", lstm.config, "--data", bad, "--predictions", earlier).error_line()
    assert earlier.read_text() == "earlier"
