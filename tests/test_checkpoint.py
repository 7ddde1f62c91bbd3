"""Checkpoints: all of it survives, damage is named and got round, also of full disks and kills."""

import errno
import itertools
import json
import logging
import math
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import paddle
import pytest
from command import run_here
from paddle import nn

from paddle_dialog.bundle import folder as bundle_module
from paddle_dialog.bundle.folder import Bundle, bundle_exists, finish_save, load_bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.training.optimizer import build_optimizer
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.run_folder import (
    find_checkpoint,
    load_progress,
    pack_training_state,
    restore_training_state,
)

VOCABULARY = 20
LSTM = LstmAttentionConfig(embedding_size=8, hidden_size=8, dropout=0.3, share_embeddings=True)


class Trainer:
    """A network with its optimiser and counters, built as a run builds them."""

    def __init__(self, model):
        paddle.seed(1)
        self.network: Any = Seq2Seq(model, VOCABULARY)
        self.progress = Progress()
        self.rebuild()

    def rebuild(self):
        """Make the optimiser of the parameters that are trained."""
        self.optimizer, _ = build_optimizer(TrainingConfig(), self.network, 7, 8)

    def step(self):
        """Take one step on any loss."""
        sum(parameter.sum() for parameter in self.network.parameters()).backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        self.progress.step += 1

    def save(self, folder):
        extra = pack_training_state(self.progress, self.optimizer, self.network)
        save_bundle(Bundle("couplet", "", {}, read_weights(self.network), "", extra), folder)

    def restore(self, folder):
        restore_training_state(load_bundle(folder), folder, self.progress, self.optimizer, self.network)


def test_all_counters_survive(tmp_path):
    trainer = Trainer(LSTM)
    curve = [(450, 50.5), (900, 41.25)]
    counters = Progress(2, 17, 1, 3.5, -1.5, 900, 2, True, curve, objective="perplexity")
    for progress in (Progress(), counters):  # before the first evaluation, and after some
        trainer.progress = progress
        trainer.save(tmp_path / "last")
        assert load_progress(load_bundle(tmp_path / "last"), tmp_path) == progress


@pytest.fixture
def run_folder(tmp_path):
    """Return a run that saved at step 1 (now `last.previous`) and at step 2 (`last`)."""
    trainer = Trainer(LSTM)
    for _ in range(2):
        trainer.step()
        trainer.save(tmp_path / "last")
    return tmp_path


def damage(folder, name="model.safetensors"):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 255
    (folder / name).write_bytes(content)


def step_found(folder):
    found = find_checkpoint(folder)
    assert found is not None
    return found[0].name, found[2].step


@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimizer.safetensors", "progress.json", "bundle.json"]
)
def test_a_damaged_checkpoint_is_named_and_the_previous_taken(run_folder, name, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("paddle_dialog"), "propagate", True)
    if name == "bundle.json":
        (run_folder / "last" / name).write_text("{", encoding="utf-8")
    else:
        damage(run_folder / "last", name)
    with caplog.at_level(logging.WARNING, logger="paddle_dialog"):
        assert step_found(run_folder) == ("last.previous", 1)
    (message,) = {record.getMessage() for record in caplog.records}
    assert f"last/{name}" in message
    assert "last.previous" in message


def test_the_newest_whole_checkpoint_is_found_and_a_torso_passed_over_in_silence(run_folder, caplog):
    assert step_found(run_folder) == ("last", 2)
    (run_folder / "last").rename(run_folder / "last.partial")
    assert step_found(run_folder) == ("last.partial", 2)  # the save was killed between its renames
    (run_folder / "last.partial" / "bundle.json").unlink()
    assert step_found(run_folder) == ("last.previous", 1)
    assert caplog.records == []


def test_where_all_checkpoints_are_damaged_each_is_named(run_folder):
    assert find_checkpoint(run_folder / "nowhere") is None
    for name in ("last", "last.previous"):
        damage(run_folder / name)
    with pytest.raises(UserError, match=r"last/model.* is damaged.*last\.previous/model.* is damaged"):
        find_checkpoint(run_folder)


def test_counters_of_another_version_are_refused(run_folder):
    bundle = load_bundle(run_folder / "last")
    stored = json.loads(bundle.extra["progress.json"])
    wrong = {"step": (-1, "3"), "best_figure": (math.nan,), "seconds": (math.inf,), "curve": (None,)}
    texts = [json.dumps({**stored, key: value}).encode() for key in wrong for value in wrong[key]]
    for text in (b"{}", b"[]", b'{"curve": [], "pace": 3}', b"{", *texts):
        with pytest.raises(UserError, match=r"here/progress\.json: is not of this version"):
            load_progress(Bundle("", "", {}, {}, "", {**bundle.extra, "progress.json": text}), Path("here"))


def test_a_checkpoint_of_another_model_or_other_trained_parameters_is_refused(run_folder):
    with pytest.raises(UserError, match="has shape"):
        Trainer(replace(LSTM, hidden_size=12)).restore(run_folder / "last")
    trainer = Trainer(LSTM)
    table: nn.Layer = trainer.network.source_embedding
    table.weight.trainable = False
    trainer.rebuild()
    with pytest.raises(UserError, match=r"source_embedding\.table\.weight is trained there only"):
        trainer.restore(run_folder / "last")


FILE_OPERATIONS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "os.scandir")


def options(trained, folder, *settings):
    words = [f"output_dir={folder}", *settings]
    return ["-c", trained["lstm"].config, *(word for setting in words for word in ("-o", setting))]


def no_space():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("lasting", [4, 7, 13], ids=["within a save", "between two", "before a manifest"])
def test_a_full_disk_leaves_the_last_good_checkpoint(trained, tmp_path, monkeypatch, lasting):
    """The disk takes two checkpoints of seven files each, and so many files more."""
    write, left = bundle_module.write_durably, [2 * 7 + lasting]

    def until_full(path, content):
        left[0] -= 1
        if left[0] < 0:
            path.write_bytes(content[:10])
            raise no_space()
        write(path, content)

    monkeypatch.setattr(bundle_module, "write_durably", until_full)
    folder = tmp_path / "run"
    settings = ["training.save_every=2", "training.eval_every=0", "training.max_steps=9"]
    line = run_here("train", *options(trained, folder, *settings)).error_line()
    assert "cannot write the bundle: No space left on device; what was saved before is still there" in line
    monkeypatch.undo()
    assert not (folder / "last.partial").exists()
    ended = run_here("train", *options(trained, folder, *settings), "--resume", "auto")
    assert ended.status == 0, ended.stderr
    assert "resumed from" in ended.stderr


def test_a_log_that_cannot_be_written_ends_nothing(trained, tmp_path):
    """Linux's /dev/full refuses every byte as a full disk does."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "train.log").symlink_to("/dev/full")
    outcome = run_here("train", *options(trained, folder, "training.max_steps=3", "training.log_every=1"))
    assert outcome.status == 0 and "step 3/3" in outcome.stderr, outcome.stderr


def test_a_config_that_cannot_be_written_leaves_the_old_one(trained, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_text("old", encoding="utf-8")
    write = Path.write_text

    def failing(self, text, *arguments, **named):
        if self.name.startswith("config.yaml"):
            write(self, text[:5], *arguments, **named)
            raise no_space()
        return write(self, text, *arguments, **named)

    monkeypatch.setattr(Path, "write_text", failing)
    line = run_here("train", *options(trained, folder, "training.max_steps=3")).error_line()
    assert "config.yaml: cannot be written (No space left on device)" in line
    assert [path.name for path in folder.glob("config*")] == ["config.yaml"]
    assert (folder / "config.yaml").read_text(encoding="utf-8") == "old"


def make(card):
    return Bundle("couplet", "", {}, {}, card)


@pytest.fixture
def killed(tmp_path):
    """Return a folder `best` whose second save was killed between its two renames."""
    folder = tmp_path / "best"
    for card in ("first", "second"):
        save_bundle(make(card), folder)
    folder.rename(tmp_path / "best.partial")
    return folder


def test_a_save_killed_between_its_renames_is_read(killed):
    assert bundle_exists(killed)
    assert load_bundle(killed).card == "second"
    (killed.with_name("best.partial") / "bundle.json").unlink()
    assert load_bundle(killed).card == "first"
    shutil.rmtree(killed.with_name("best.previous"))
    assert not bundle_exists(killed)
    with pytest.raises(UserError, match=r"best: is not a bundle"):
        load_bundle(killed)


def test_a_full_disk_after_a_killed_save_costs_nothing(killed, monkeypatch):
    def failing(path, content):
        raise no_space()

    monkeypatch.setattr(bundle_module, "write_durably", failing)
    with pytest.raises(UserError, match="No space left"):
        save_bundle(make("third"), killed)
    assert load_bundle(killed).card == "second"


def test_predict_finds_what_a_killed_save_has_left(trained, tmp_path):
    shutil.copytree(trained["lstm"].folder / "best", tmp_path / "run" / "best.previous")
    whole = run_here("predict", "-c", trained["lstm"].config, "山春红")
    found = run_here("predict", *options(trained, tmp_path / "run"), "山春红")
    assert found.status == whole.status == 0, found.stderr
    assert found.stdout == whole.stdout
    assert f"weights: {tmp_path / 'run' / 'best'}\n" in found.stderr


def killed_at(number, save):
    """Return whether a fork of this process that saves was killed, as by `kill -9`, at a file operation."""
    child = os.fork()
    if child == 0:
        operations = itertools.count()

        def kill(event, arguments):
            if event in FILE_OPERATIONS and next(operations) == number:
                os._exit(9)

        sys.addaudithook(kill)
        save()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.skipif(sys.platform != "linux", reason="forks a process with threads")
def test_a_save_killed_at_any_file_operation_leaves_a_whole_bundle(tmp_path):
    folder, number = tmp_path / "best", 0
    for card in ("first", "second"):
        save_bundle(make(card), folder)
    while killed_at(number, lambda: save_bundle(make("third"), folder)):
        card = load_bundle(folder).card
        assert card in ("second", "third"), number
        if number % 2:  # the next save does that itself
            finish_save(folder)
            assert folder.is_dir() and load_bundle(folder).card == card, number
        save_bundle(make("second"), folder)
        assert load_bundle(folder).card == "second" and not folder.with_name("best.partial").exists(), number
        number += 1
    assert load_bundle(folder).card == "third" and number >= 12


def test_a_run_killed_at_its_very_last_rename_has_all_its_models(trained, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained["lstm"].folder, folder)
    (folder / "last").rename(folder / "last.partial")
    (folder / "best").rename(folder / "best.partial")
    ended = run_here("train", *options(trained, folder), "--resume", "auto")
    assert ended.status == 0 and "the run has already finished" in ended.stderr, ended.stderr
    assert (folder / "last").is_dir() and (folder / "best").is_dir()
    assert not list(folder.glob("*.partial"))
