"""Checkpoints: all of it survives, and damage is named and got round; `test_training_settings.py` resumes runs."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import paddle
import pytest
from paddle import nn

from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig, TransformerConfig
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

    def __init__(self, model: ModelConfig) -> None:
        paddle.seed(1)
        self.network: Any = Seq2Seq(model, VOCABULARY)
        self.progress = Progress()
        self.rebuild()

    def rebuild(self) -> None:
        """Make the optimiser of the parameters that are trained."""
        self.optimizer, _ = build_optimizer(TrainingConfig(), self.network, 7, 8)

    def step(self) -> None:
        """Take one step on any loss."""
        sum(parameter.sum() for parameter in self.network.parameters()).backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        self.progress.step += 1

    def save(self, folder: Path) -> None:
        extra = pack_training_state(self.progress, self.optimizer, self.network)
        save_bundle(Bundle("couplet", "", {}, read_weights(self.network), "", extra), folder)

    def restore(self, folder: Path) -> None:
        restore_training_state(load_bundle(folder), folder, self.progress, self.optimizer, self.network)


def test_all_counters_survive(tmp_path):
    trainer = Trainer(LSTM)
    curve = [(450, 50.5), (900, 41.25)]
    counters = Progress(2, 17, 1, 3.5, 41.25, 900, 2, True, curve, objective="perplexity")
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


def damage(folder: Path, name: str = "model.safetensors") -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 255
    (folder / name).write_bytes(content)


def step_found(folder: Path) -> tuple[str, int]:
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
    for text in (b"{}", b"[]", b'{"curve": [], "pace": 3}', b"{"):
        with pytest.raises(UserError, match=r"here/progress\.json: is not of this version"):
            load_progress(Bundle("", "", {}, {}, "", {**bundle.extra, "progress.json": text}), Path("here"))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (TransformerConfig(width=8, num_heads=2, inner_width=12), "another model"),
        (replace(LSTM, num_layers=1), "another model"),
        (replace(LSTM, hidden_size=12), "has shape"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(run_folder, other, message):
    with pytest.raises(UserError, match=message):
        Trainer(other).restore(run_folder / "last")


def test_a_checkpoint_in_which_other_parameters_were_trained_is_refused(run_folder):
    trainer = Trainer(LSTM)
    table: nn.Layer = trainer.network.source_embedding
    table.weight.trainable = False
    trainer.rebuild()
    with pytest.raises(UserError, match=r"source_embedding\.table\.weight is trained there only"):
        trainer.restore(run_folder / "last")
