"""Checkpoints: a resumed run equals the uninterrupted one bit by bit, and damage is named and got round."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig, TransformerConfig
from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.training.losses import SequenceCrossEntropy
from paddle_dialog.training.optimizer import build_optimizer
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.run_folder import (
    find_checkpoint,
    load_progress,
    pack_training_state,
    restore_training_state,
)

VOCABULARY, BATCH, LENGTH = 20, 4, 5
STEPS, SAVED_AT = 7, 3
MODELS: dict[str, ModelConfig] = {
    "lstm": LstmAttentionConfig(embedding_size=8, hidden_size=8, dropout=0.3, share_embeddings=True),
    "transformer": TransformerConfig(
        width=8,
        num_heads=2,
        inner_width=12,
        encoder_layers=1,
        decoder_layers=1,
        dropout=0.3,
        aligned_input=True,
    ),
}


def training(optimizer: str = "adam") -> TrainingConfig:
    decay = 0.1 if optimizer == "adamw" else 0.0
    return TrainingConfig(
        optimizer=optimizer,
        weight_decay=decay,
        schedule="cosine",
        warmup_steps=2,
        learning_rate=0.05,
    )


class Trainer:
    """A network with its optimiser and counters, built as a run builds them."""

    def __init__(self, model: ModelConfig, config: TrainingConfig, seed: int = 1) -> None:
        paddle.seed(seed)
        self.network: Any = Seq2Seq(model, VOCABULARY)
        self.optimizer, self.schedule = build_optimizer(config, self.network, STEPS, 8)
        self.criterion = SequenceCrossEntropy(0.1)
        self.progress = Progress()

    def train(self, until: int) -> list[float]:
        """Step on batches and random numbers that depend on the step alone; return the losses."""
        self.network.train()
        losses = []
        while self.progress.step < until:
            rng = np.random.default_rng(self.progress.step)
            paddle.seed(100 + self.progress.step)
            source, target, label = (
                paddle.to_tensor(rng.integers(4, VOCABULARY, (BATCH, LENGTH))) for _ in range(3)
            )
            logits = self.network(source, paddle.to_tensor([5, 4, 2, 5]), target)
            loss = self.criterion(logits, label, paddle.ones([BATCH, LENGTH]))
            loss.backward()
            self.optimizer.step()
            self.optimizer.clear_grad()
            self.schedule.step()
            self.progress.step += 1
            losses.append(float(loss))
        return losses

    def save(self, folder: Path) -> None:
        extra = pack_training_state(self.progress, self.optimizer, self.network)
        save_bundle(Bundle("couplet", "", {}, read_weights(self.network), "", extra), folder)

    def restore(self, folder: Path) -> None:
        bundle = load_bundle(folder)
        self.progress = load_progress(bundle, folder)
        restore_training_state(bundle, folder, self.optimizer, self.network)
        self.schedule.step(self.progress.step)

    def moments(self) -> list[np.ndarray]:
        """Return everything the optimiser keeps, in the order of the parameters."""
        state = self.optimizer.state_dict()
        names = [parameter.name for parameter in self.network.parameters()]
        return [state[key].numpy() for name in names for key in sorted(state) if key.startswith(f"{name}_")]


def assert_equal_arrays(ours: Iterable[np.ndarray], theirs: Iterable[np.ndarray]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_a_resumed_run_equals_the_uninterrupted_one_bit_by_bit(
    tmp_path: Path, model: ModelConfig, optimizer: str
) -> None:
    whole = Trainer(model, training(optimizer))
    losses = whole.train(STEPS)

    first = Trainer(model, training(optimizer))
    before = first.train(SAVED_AT)
    first.save(tmp_path / "last")

    second = Trainer(model, training(optimizer), seed=99)
    second.restore(tmp_path / "last")
    assert second.progress == first.progress
    assert second.optimizer.get_lr() == first.optimizer.get_lr()
    assert before + second.train(STEPS) == losses
    assert_equal_arrays(read_weights(second.network).values(), read_weights(whole.network).values())
    moments = whole.moments()
    assert len(moments) == 4 * len(whole.network.parameters())  # two moments, two powers of beta
    assert_equal_arrays(second.moments(), moments)
    assert second.optimizer.get_lr() == whole.optimizer.get_lr()


def test_forgetting_the_moments_would_be_seen(tmp_path: Path) -> None:
    """The counterpart of the test above: with weights and schedule alone the steps come out otherwise."""
    whole = Trainer(MODELS["lstm"], training())
    whole.train(SAVED_AT)
    whole.save(tmp_path / "last")
    second = Trainer(MODELS["lstm"], training())
    second.restore(tmp_path / "last")
    second.optimizer, second.schedule = build_optimizer(training(), second.network, STEPS, 8)
    second.schedule.step(SAVED_AT)
    whole.train(STEPS)
    second.train(STEPS)
    ours, theirs = (read_weights(trainer.network)["output.weight"] for trainer in (whole, second))
    assert np.abs(ours - theirs).max() > 1e-4


def test_all_counters_survive(tmp_path: Path) -> None:
    trainer = Trainer(MODELS["lstm"], training())
    trainer.train(1)
    trainer.progress = Progress(
        2, 17, 1, 3.5, 41.25, 900, 2, True, [(450, 50.5), (900, 41.25)], objective="perplexity"
    )
    trainer.save(tmp_path / "last")
    assert load_progress(load_bundle(tmp_path / "last"), tmp_path) == trainer.progress


def test_counters_before_the_first_evaluation_survive(tmp_path: Path) -> None:
    trainer = Trainer(MODELS["lstm"], training())
    trainer.train(1)
    trainer.save(tmp_path / "last")
    assert load_progress(load_bundle(tmp_path / "last"), tmp_path).best_figure is None


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Return a run that saved at step 1 (now `last.previous`) and at step 2 (`last`)."""
    trainer = Trainer(MODELS["lstm"], training())
    for step in (1, 2):
        trainer.train(step)
        trainer.save(tmp_path / "last")
    return tmp_path


def damage(folder: Path, name: str = "model.safetensors") -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 255
    (folder / name).write_bytes(content)


def step_found(folder: Path) -> tuple[str, int]:
    found = find_checkpoint(folder)
    assert found is not None
    return found[0].name, load_progress(found[1], found[0]).step


def test_the_newest_checkpoint_is_found(run_folder: Path) -> None:
    assert step_found(run_folder) == ("last", 2)


def test_a_folder_without_checkpoints_has_none(tmp_path: Path) -> None:
    assert find_checkpoint(tmp_path) is None
    assert find_checkpoint(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimizer.safetensors", "progress.json", "bundle.json"]
)
def test_a_damaged_checkpoint_is_named_and_the_previous_taken(
    run_folder: Path, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_save_killed_between_its_renames_is_found_whole(run_folder: Path) -> None:
    (run_folder / "last").rename(run_folder / "last.partial")
    assert step_found(run_folder) == ("last.partial", 2)


def test_a_torso_of_a_save_is_passed_over_in_silence(
    run_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (run_folder / "last").rename(run_folder / "last.partial")
    (run_folder / "last.partial" / "bundle.json").unlink()
    assert step_found(run_folder) == ("last.previous", 1)
    assert caplog.records == []


def test_where_all_checkpoints_are_damaged_each_is_named(run_folder: Path) -> None:
    for name in ("last", "last.previous"):
        damage(run_folder / name)
    with pytest.raises(UserError, match=r"last/model.* is damaged.*last\.previous/model.* is damaged"):
        find_checkpoint(run_folder)


def test_a_finished_model_is_no_checkpoint(tmp_path: Path) -> None:
    network = Seq2Seq(MODELS["lstm"], VOCABULARY)
    save_bundle(Bundle("couplet", "", {}, read_weights(network)), tmp_path / "last")
    with pytest.raises(UserError, match="no training state"):
        find_checkpoint(tmp_path)


def test_counters_of_another_version_are_refused(run_folder: Path) -> None:
    bundle = load_bundle(run_folder / "last")
    for text in (b"{}", b"[]", b'{"curve": [], "pace": 3}', b"{"):
        with pytest.raises(UserError, match=r"here/progress\.json: is not of this version"):
            load_progress(Bundle("", "", {}, {}, "", {**bundle.extra, "progress.json": text}), Path("here"))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (MODELS["transformer"], "another model"),
        (
            LstmAttentionConfig(embedding_size=8, hidden_size=8, num_layers=1, share_embeddings=True),
            "another model",
        ),
        (LstmAttentionConfig(embedding_size=8, hidden_size=12, share_embeddings=True), "has shape"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(run_folder: Path, other: ModelConfig, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Trainer(other, training()).restore(run_folder / "last")


def test_a_checkpoint_in_which_other_parameters_were_trained_is_refused(run_folder: Path) -> None:
    trainer = Trainer(MODELS["lstm"], training())
    table: nn.Layer = trainer.network.source_embedding
    table.weight.trainable = False
    trainer.optimizer, _ = build_optimizer(training(), trainer.network, STEPS, 8)
    with pytest.raises(UserError, match=r"source_embedding\.table\.weight is trained there only"):
        trainer.restore(run_folder / "last")
