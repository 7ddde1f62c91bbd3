"""A loss or gradient that is not finite harms nothing, is counted, and ends the run where it does not stop."""

import json
import math

import numpy as np
import paddle
import pytest
from command import run_here
from safetensors.numpy import load_file

from paddle_dialog.metrics import Accuracy, Perplexity
from paddle_dialog.training.losses import SequenceCrossEntropy
from paddle_dialog.training.progress import Meter, Progress


@pytest.fixture
def train(trained, tmp_path):
    """Train the tiny LSTM for 8 steps; return the outcome and the run's folder."""

    def start(*settings, more=()):
        common = ["max_steps=8", "eval_every=4", "save_every=2", "log_every=1"]
        words = [f"training.{setting}" for setting in (*common, *settings)] + [f"output_dir={tmp_path}/run"]
        options = [word for setting in words for word in ("-o", setting)]
        return run_here("train", "-c", trained["lstm"].config, *options, *more), tmp_path / "run"

    return start


def spoil(monkeypatch, factors, evaluations=()):
    """Spoil the loss of the training batches (and dev batches) with these numbers, counted from 1."""
    forward, seen = SequenceCrossEntropy.forward, {"training": 0, "dev": 0}

    def spoilt(self, logits, label, mask):
        loss = forward(self, logits, label, mask)
        training = paddle.is_grad_enabled()
        seen["training" if training else "dev"] += 1
        if training:
            return factors.get(seen["training"], lambda value: value)(loss)
        if seen["dev"] in evaluations:
            self.token_nll = self.token_nll * math.nan
        return loss

    monkeypatch.setattr(SequenceCrossEntropy, "forward", spoilt)


BAD = {
    "nan": lambda loss: loss * math.nan,
    "infinite gradient": lambda loss: loss * math.inf,
    "infinite loss with a finite gradient": lambda loss: loss + math.inf,
}


@pytest.mark.parametrize("accumulate", [1, 2])
def test_skipped_steps_are_counted_and_leave_no_trace(train, monkeypatch, accumulate):
    """Of two batches that make a step one bad one is enough."""
    spoil(monkeypatch, dict(zip((3, 7, 11), BAD.values(), strict=True)))
    outcome, folder = train(f"accumulate={accumulate}")
    assert outcome.status == 0, outcome.stderr
    state = json.loads((folder / "last/progress.json").read_text())
    skipped = [3, 7] if accumulate == 1 else [2, 4, 6]  # the run has 8 steps, of 8 or 16 batches
    assert (state["step"], state["skipped"], state["skipped_in_a_row"]) == (8, len(skipped), 0)
    for step in skipped:
        assert f"step {step} skipped: loss or gradient not finite" in outcome.stderr
    assert f"skipped {len(skipped)}\n" in outcome.stderr
    for file in ("model", "optimizer"):
        for name, value in load_file(folder / "last" / f"{file}.safetensors").items():
            assert np.isfinite(value).all(), (file, name)
    assert all(math.isfinite(perplexity) for _, perplexity in state["curve"])


def test_batches_that_are_not_finite_are_left_out_of_the_reported_perplexity():
    meter = Meter(Perplexity())
    for nll in (3.0, math.nan, math.inf, 5.0):
        sums = [paddle.to_tensor(nll, "float64"), paddle.to_tensor(2.0, "float64")]
        meter.add(paddle.to_tensor(7.0), sums, finite_only=True)
    assert meter.read() == pytest.approx((7.0, math.exp(8.0 / 4)))
    assert all(math.isnan(value) for value in Meter(Perplexity()).read())


def test_too_many_in_a_row_end_the_run_and_leave_the_checkpoint(train, monkeypatch):
    monkeypatch.setattr("paddle_dialog.training.run.MAX_SKIPPED", 3)
    spoil(monkeypatch, {2: BAD["nan"], 4: BAD["nan"]} | dict.fromkeys(range(6, 9), BAD["nan"]))
    outcome, folder = train()
    assert "step 8: the loss or gradient of 3 steps in a row was not finite" in outcome.error_line()
    state = json.loads((folder / "last/progress.json").read_text())
    assert (state["step"], state["skipped"]) == (6, 3)
    assert all(np.isfinite(value).all() for value in load_file(folder / "last/model.safetensors").values())


def test_a_dev_perplexity_that_is_no_number_is_never_the_best(train, monkeypatch):
    """One dev batch an evaluation; first the first of two evaluations is spoilt, then both."""
    spoil(monkeypatch, {}, evaluations=[1, 3, 4])
    outcome, folder = train()
    assert outcome.status == 0, outcome.stderr
    assert "step 4 dev perplexity nan\n" in outcome.stderr and "at step 8" in outcome.stdout
    state = json.loads((folder / "last/progress.json").read_text())
    assert state["best_step"] == 8 and math.isnan(state["curve"][0][1])
    assert (folder / "best").is_dir()
    outcome, folder = train(more=["--overwrite"])
    assert outcome.status == 0, outcome.stderr
    assert "there is no 'best', as no dev perplexity was finite" in outcome.stderr
    assert not (folder / "best").exists() and (folder / "last").is_dir()
    assert "best dev perplexity" not in outcome.stdout


@pytest.mark.parametrize(
    ("objective", "figures", "better"),
    [
        (Perplexity(), (math.nan, 5.0, math.inf, 4.0, 7.0, 4.5), [2, 4]),
        (Accuracy(), (math.nan, 0.0, 0.4, 0.3, 0.4, -math.inf), [2, 3]),
    ],
)
def test_the_best_is_a_finite_figure(objective, figures, better):
    progress, found = Progress(), []
    for progress.step, figure in enumerate(figures, 1):
        found += [progress.step] * progress.add_figure(figure, objective)
    assert found == better and progress.best_step == better[-1]
    assert progress.best_figure == figures[progress.best_step - 1]
    assert progress.evaluations_without_gain == len(figures) - progress.best_step
