"""Accumulation, averaged weights, the N best, loss scaling and the seed, through the real training command."""

import dataclasses
import hashlib
import json
import re
import shutil

import numpy as np
import paddle
import pytest
from command import ROOT, run_here
from paddle import nn
from safetensors.numpy import load_file

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.training.average import WeightAverage
from paddle_dialog.training.conductor import Conductor
from paddle_dialog.training.loss_scale import LossScale
from paddle_dialog.training.optimizer import build_optimizer
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.training_model import TrainingModel


@pytest.fixture
def train(trained, tmp_path):
    """Train the tiny LSTM with settings of one's own; return the run's folder."""

    def start(name, *words, status=0, **settings):
        folder = tmp_path / name
        settings = {"output_dir": folder, "training.show_examples": 0, "training.eval_every": 0, **settings}
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        outcome = run_here("train", "-c", trained["lstm"].config, *options, *words)
        assert outcome.status == status, outcome.stderr
        return folder

    return start


def named(**settings):
    return {f"training.{name}": value for name, value in settings.items()}


def weights(folder, name="last"):
    return load_file(folder / name / "model.safetensors")


def digest(folder, file):
    return hashlib.sha256((folder / file).read_bytes()).hexdigest()


def progress(folder):
    return json.loads((folder / "last" / "progress.json").read_text())


def largest_difference(ours, theirs):
    assert ours.keys() == theirs.keys()
    return max(float(np.abs(ours[name] - theirs[name]).max()) for name in ours)


def first_lines(trained, folder, count):
    """Return the first lines of the training data, of 3 to 6 characters each."""
    lines = trained["lstm"].config.with_name("train.tsv").read_text(encoding="utf-8").splitlines()[:count]
    path = folder / f"{count}.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_accumulated_batches_equal_one_large_batch(train, trained, tmp_path):
    """Of unequal lengths: each batch counts by its tokens. Adam's ε keeps it from blowing up rounding errors."""
    common = named(epochs=6, epsilon=1e-3) | {"data.train": first_lines(trained, tmp_path, 32)}
    small = train("small", **common, **{"data.batch_size": 8}, **named(accumulate=4))
    large = train("large", **common, **{"data.batch_size": 32})
    assert progress(small)["step"] == progress(large)["step"] == 6
    assert largest_difference(weights(small), weights(large)) < 1e-5
    begun = train("begun", **common, **{"data.batch_size": 32}, **named(max_steps=1))
    assert largest_difference(weights(begun), weights(large)) > 1e-2


def test_the_rest_of_an_epoch_makes_a_step(train, trained, tmp_path):
    """Five batches of eight by threes: two steps an epoch."""
    data = {"data.train": first_lines(trained, tmp_path, 40), "data.batch_size": 8}
    folder = train("run", **data, **named(accumulate=3, epochs=4, schedule="cosine", eval_every=3))
    log = (folder / "train.log").read_text(encoding="utf-8")
    assert "8 steps in all" in log and "step 8/8 epoch 4.00" in log
    assert [step for step, _ in progress(folder)["curve"]] == [3, 6, 8]


def test_all_of_it_resumes_to_the_bit(train, monkeypatch):
    """Stopped after a checkpoint inside an epoch, whose rest is an incomplete step."""
    settings = {"model.dropout": 0.3} | named(
        accumulate=4, epochs=4, ema_decay=0.9, keep_best=2, eval_every=2, save_every=5, amp="O1",
        amp_dtype="float16", schedule="cosine",
    )  # fmt: skip
    whole = train("whole", **settings)

    go_on = Conductor.on_train_batch_end

    def go_on_and_die(self, step, logs=None):
        go_on(self, step, logs)
        if self.progress.step == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(Conductor, "on_train_batch_end", go_on_and_die)
    resumed = train("resumed", **settings, status=130)
    monkeypatch.undo()
    assert progress(resumed)["step"] == 5
    train("resumed", "--resume", "auto", **settings)

    kept = {path.name for path in whole.glob("best*")}
    assert kept == {path.name for path in resumed.glob("best*")}
    for file in [f"{name}/model.safetensors" for name in sorted(kept - {"best.previous"})] + [
        "last/model.safetensors",
        "last/optimizer.safetensors",
        "last/average.safetensors",
    ]:
        assert digest(whole, file) == digest(resumed, file), file
    ours, theirs = progress(whole), progress(resumed)
    assert ours["step"] == 12 and ours["steps_since_overflow"] == 12 and len(ours["kept"]) == 2
    assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}


def test_an_average_by_hand():
    """Weights 1, 2, 4 with d = 0.5: sums 0.5, 1.25, 2.625; divided by 1 - 0.125."""
    layer = nn.Linear(1, 1, bias_attr=False)
    average = WeightAverage(layer, 0.5)
    with average.applied():
        pass  # nothing was taken in: the weights stay
    for value in (1.0, 2.0, 4.0):
        layer.weight.set_value(paddle.full([1, 1], value))
        average.update()
        if value == 1.0:
            with average.applied():
                assert layer.weight.item() == 1.0
    with average.applied():
        assert layer.weight.item() == 3.0
    assert layer.weight.item() == 4.0


def test_the_average_is_evaluated_and_saved_as_the_best(train):
    settings = named(epochs=1, max_steps=8, ema_decay=0.8, keep_best=3, eval_every=2)
    folder = train("averaged", **settings)
    state = progress(folder)
    assert state["best_step"] == 8  # what follows compares with the last step
    sums = load_file(folder / "last" / "average.safetensors")
    for name, value in weights(folder, "best").items():
        np.testing.assert_allclose(value, sums[name] / (1 - 0.8**8), rtol=1e-6)
    plain = train("plain", **{**settings, "training.ema_decay": "null"})
    assert largest_difference(weights(folder), weights(plain)) == 0.0
    assert largest_difference(weights(folder, "best"), weights(folder)) > 1e-3
    assert all(ours != theirs for ours, theirs in zip(state["curve"], progress(plain)["curve"], strict=True))

    lowest = sorted((perplexity, step) for step, perplexity in state["curve"])[:3]
    assert state["kept"] == [list(entry) for entry in lowest]
    numbered = {path.name for path in folder.glob("best-*")}
    assert numbered == {f"best-{step}" for _, step in lowest}
    assert digest(folder, "best-8/model.safetensors") == digest(folder, "best/model.safetensors")


def test_the_average_of_a_frozen_run_needs_its_own_model(tmp_path):
    average = WeightAverage(nn.Linear(2, 2), 0.9)
    average.update()
    with pytest.raises(Exception, match="averaged weights are of another model"):
        WeightAverage(nn.LayerNorm(3), 0.9).restore(
            WeightAverage(nn.Embedding(2, 2), 0.9).serialise(), tmp_path
        )


def test_loss_scaling_changes_no_bit(train):
    """The scale is a power of two, and a CPU computes in float32 whatever amp says."""
    plain = train("plain", **named(max_steps=6, clip_norm=0.5))
    scaled = train("scaled", **named(max_steps=6, clip_norm=0.5, amp="O2", amp_dtype="float16"))
    assert largest_difference(weights(plain), weights(scaled)) == 0.0
    assert "has no effect on the CPU" in (scaled / "train.log").read_text(encoding="utf-8")
    assert progress(scaled)["steps_since_overflow"] == 6


def test_the_loss_scale_halves_and_doubles():
    progress = Progress(loss_scale=8.0)
    scale = LossScale(progress, growth_interval=2)
    seen = []
    for finite in (True, False, True, True, True):
        scale.update(paddle.to_tensor(finite))
        scale.store(progress)
        seen.append((progress.loss_scale, progress.steps_since_overflow))
    assert seen == [(8.0, 1), (4.0, 0), (4.0, 1), (8.0, 0), (8.0, 1)]


def test_scaled_gradients_are_unscaled_before_they_are_clipped():
    """(3, 4) has norm 5: clipped to 2.5 it is (1.5, 2)."""
    for clip_norm, expected in ((2.5, [1.5, 2.0]), (10.0, [3.0, 4.0]), (None, [3.0, 4.0])):
        layer = nn.Linear(1, 2, bias_attr=False)
        scale = LossScale(Progress(loss_scale=64.0))
        _, clip = build_optimizer(TrainingConfig(clip_norm=clip_norm), layer, 1, 8, scale)
        gradient = paddle.to_tensor([[3.0 * 64, 4.0 * 64]])
        clip([(layer.weight, gradient)])
        np.testing.assert_allclose(gradient.numpy(), [expected], rtol=1e-6)
        assert float(clip.last_norm) == 5.0


def test_the_same_seed_gives_the_same_run(train, trained):
    settings = {"model.dropout": 0.3} | named(max_steps=5)
    first, again, other = (train(f"run{i}", seed=seed, **settings) for i, seed in enumerate((3, 3, 4)))
    assert digest(first, "last/model.safetensors") == digest(again, "last/model.safetensors")
    assert digest(first, "last/model.safetensors") != digest(other, "last/model.safetensors")


def test_a_step_reads_nothing_back_from_the_device(train, monkeypatch):
    """As on a GPU, where each reading would wait for all that is queued; reports and checkpoints may read."""
    inside, read = [False], []
    step = TrainingModel.train_batch

    def watched_step(self, *arguments, **named_arguments):
        inside[0] = True
        try:
            return step(self, *arguments, **named_arguments)
        finally:
            inside[0] = False

    def watch(name):
        original = getattr(paddle.Tensor, name)

        def watched(self, *arguments, **named_arguments):
            if inside[0]:
                read.append(name)
            return original(self, *arguments, **named_arguments)

        monkeypatch.setattr(paddle.Tensor, name, watched)

    for name in ("numpy", "item", "tolist", "__float__", "__int__", "__bool__", "__array__"):
        watch(name)
    monkeypatch.setattr(TrainingModel, "train_batch", watched_step)
    on_cpu = train("cpu", **named(max_steps=4, ema_decay=0.9))
    assert {"__bool__", "numpy"} <= set(read)  # on a CPU the flag of a finite step is read at once
    read.clear()
    for module in ("finite", "optimizer"):
        monkeypatch.setattr(f"paddle_dialog.training.{module}.read_at_once", lambda flag: False)
    settings = named(max_steps=4, ema_decay=0.9, amp="O1", amp_dtype="float16")
    elsewhere = train("elsewhere", **settings)
    assert read == []
    assert digest(on_cpu, "last/model.safetensors") == digest(elsewhere, "last/model.safetensors")


def test_wrong_settings_are_told_all_at_once(trained):
    wrong = named(accumulate=0, max_skipped=0, ema_decay=1.0, keep_best=0, amp="O3", amp_dtype="int8")
    options = [word for key, value in wrong.items() for word in ("-o", f"{key}={value}")]
    outcome = run_here("train", "-c", trained["lstm"].config, *options)
    assert outcome.status == 2
    assert all(key in outcome.stderr for key in wrong), outcome.stderr
    options = ["-o", "training.keep_best=2", "-o", "data.dev=null"]
    assert "choosing the best models needs data.dev" in (
        run_here("train", "-c", trained["lstm"].config, *options).error_line()
    )


def test_a_run_with_numbered_models_is_not_written_over(train):
    folder = train("run", **named(max_steps=2))
    shutil.copytree(folder / "best", folder / "best-2")
    for name in ("best", "last"):
        shutil.rmtree(folder / name)
    train("run", **named(max_steps=2), status=2)
    train("run", "--overwrite", **named(max_steps=2))
    assert not (folder / "best-2").exists()


def test_every_setting_is_explained_in_chinese_with_its_default():
    """In English its declaration explains it, which `tests/test_config_explained.py` holds it to."""
    page = (ROOT / "docs" / "training.zh.md").read_text(encoding="utf-8")
    explained = dict(
        re.findall(r"^\| `(\w+)` \| (\S+) \| \S", page[: page.index("**梯度累积。**")], re.MULTILINE)
    )
    settings = dataclasses.asdict(TrainingConfig())
    assert explained == {name: "null" if value is None else str(value) for name, value in settings.items()}
