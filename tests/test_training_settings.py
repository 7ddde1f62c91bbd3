"""Accumulation and the seed, through the real training command."""

import hashlib
import json

import numpy as np
import pytest
from command import run_here
from safetensors.numpy import load_file

from paddle_dialog.training.run import Run


@pytest.fixture
def train(trained, tmp_path):
    """Train the tiny LSTM with settings of one's own; return the run's folder."""

    def start(name, *words, status=0, **settings):
        folder = tmp_path / name
        settings = {"output_dir": folder, "training.eval_every": 0, **settings}
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


def test_all_of_it_resumes_to_the_bit(train, monkeypatch):
    """Stopped after a checkpoint inside an epoch, whose rest is an incomplete step."""
    settings = {"model.dropout": 0.3} | named(
        accumulate=4, epochs=4, eval_every=2, save_every=5, amp="O1",
        amp_dtype="float16", schedule="cosine",
    )  # fmt: skip
    whole = train("whole", **settings)

    step = Run.step

    def step_and_die(self, batches):
        step(self, batches)
        if self.progress.step == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "step", step_and_die)
    resumed = train("resumed", **settings, status=130)
    monkeypatch.undo()
    assert progress(resumed)["step"] == 5
    train("resumed", "--resume", "auto", **settings)

    for file in ("best/model.safetensors", "last/model.safetensors", "last/optimizer.safetensors"):
        assert digest(whole, file) == digest(resumed, file), file
    ours, theirs = progress(whole), progress(resumed)
    assert ours["step"] == 12
    assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}


def test_the_same_seed_gives_the_same_run(train, trained):
    settings = {"model.dropout": 0.3} | named(max_steps=5)
    first, again, other = (train(f"run{i}", seed=seed, **settings) for i, seed in enumerate((3, 3, 4)))
    assert digest(first, "last/model.safetensors") == digest(again, "last/model.safetensors")
    assert digest(first, "last/model.safetensors") != digest(other, "last/model.safetensors")
