"""Runs that are killed, resumed, accumulate or have one seed end with the same weights; bad steps leave no trace."""

import hashlib
import math
import re
import shlex
import signal
import time

import numpy as np
import paddle
import pytest
from command import Outcome, progress, run, run_here, start
from safetensors.numpy import load_file

from paddle_dialog.metrics import Accuracy, Perplexity
from paddle_dialog.training.losses import SequenceCrossEntropy
from paddle_dialog.training.progress import Meter, Progress
from paddle_dialog.training.run import Run

STEPS = 60


@pytest.fixture(scope="module")
def recipe(trained):
    """Return the LSTM recipe with dropout, a schedule, and a checkpoint every few steps."""
    settings = "epochs=6 schedule=cosine warmup_steps=4 eval_every=8 save_every=3"
    options = [word for setting in settings.split() for word in ("-o", f"training.{setting}")]
    return ["-c", trained["lstm"].config, "-o", "model.dropout=0.3", *options]


@pytest.fixture(scope="module")
def undisturbed(recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    outcome = run("train", *recipe, "-o", f"output_dir={folder}")
    assert outcome.status == 0, outcome.stderr
    return folder


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stop_after(arguments, step, number):
    """Start training, wait until the log tells of a step, that one or a later one, and send a signal."""
    process = start("train", *arguments, "-o", "training.log_every=1")
    told = []
    for raw in process.stderr:
        told.append(raw.decode())
        found = re.search(rf" step (\d+)/{STEPS} ", told[-1])
        if found and int(found[1]) >= step:
            process.send_signal(number)
            break
    out, rest = process.communicate(timeout=300)
    return Outcome(process.returncode, out.decode(), "".join(told) + rest.decode())


def test_a_run_killed_and_interrupted_equals_an_undisturbed_one(recipe, undisturbed, tmp_path):
    folder = tmp_path / "run"
    arguments = [*recipe, "-o", f"output_dir={folder}"]

    # kill -9 somewhere after step 5; the checkpoint of step 3 at least is whole
    moment = time.time_ns() % 12
    killed = stop_after(arguments, 5 + moment, signal.SIGKILL)
    assert killed.status == -signal.SIGKILL, (moment, killed.stderr)

    refused = run_here("train", *arguments).error_line()
    assert "already holds a run; continue it with --resume auto, begin anew with --overwrite" in refused

    # Ctrl-C, then SIGTERM, long before the end: each stops after its step and saves it
    resume = [*arguments, "--resume", "auto"]
    for number, step in ((signal.SIGINT, 20), (signal.SIGTERM, 30)):
        stopped = stop_after(resume, step, number)
        assert stopped.status == 130, stopped.stderr
        assert "Traceback" not in stopped.stderr
        assert "resumed from" in stopped.stderr and "--resume auto continues" in stopped.stderr
        saved = progress(folder)
        assert step <= saved["step"] <= STEPS and not saved["finished"]
        assert f"stopped at step {saved['step']};" in stopped.stderr

    # the command that it prints is all that it takes
    told = r"--resume auto continues: python tools/train\.py (.*)$"
    ended = run("train", *shlex.split(re.search(told, stopped.stderr, re.MULTILINE)[1]))
    assert ended.status == 0 and "changed since the checkpoint: " not in ended.stderr, ended.stderr

    for name in ("last", "best"):
        for file in ("model.safetensors", "text.vocabulary.txt"):
            assert digest(folder / name / file) == digest(undisturbed / name / file), (moment, name, file)
    assert digest(folder / "last/optimizer.safetensors") == digest(undisturbed / "last/optimizer.safetensors")
    expected, found = progress(undisturbed), progress(folder)
    assert [step for step, _ in expected["curve"]] == [8, 16, 24, 32, 40, 48, 56, 60]
    for key in expected.keys() - {"seconds"}:
        assert found[key] == expected[key], key
    assert expected["finished"] and expected["step"] == STEPS

    before = {name: digest(folder / name / "model.safetensors") for name in ("last", "best")}
    again = run_here("train", *resume)
    assert again.status == 0, again.stderr
    assert f"the run has already finished, at step {STEPS}" in again.stderr
    assert before == {name: digest(folder / name / "model.safetensors") for name in before}


def test_overwrite_begins_anew(trained, tmp_path):
    """In this process: the new run shares nothing with the old one, and bad data leaves the old one alone."""
    folder = tmp_path / "run"
    arguments = ["-c", trained["lstm"].config, "-o", f"output_dir={folder}", "-o", "training.max_steps=3"]
    arguments += ["-o", "training.eval_every=0"]
    old = [folder / "last" / "bundle.json", folder / "best" / "old", folder / "vdl" / "vdlrecords.1.log"]
    for file in old:
        file.parent.mkdir(parents=True)
        file.write_text("{}")

    run_here("train", *arguments, "--overwrite", "-o", "data.train=nowhere.tsv").error_line()
    assert all(file.exists() for file in old)

    outcome = run_here("train", *arguments, "--overwrite")
    assert outcome.status == 0, outcome.stderr
    assert progress(folder)["step"] == 3
    assert not old[1].exists() and not old[2].exists()


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
    other = train("other", seed=4, **settings)
    assert digest(whole / "last/model.safetensors") != digest(other / "last/model.safetensors")

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
        assert digest(whole / file) == digest(resumed / file), file
    ours, theirs = progress(whole), progress(resumed)
    assert ours["step"] == 12
    assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}


@pytest.fixture
def train_eight(trained, tmp_path):
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
def test_skipped_steps_are_counted_and_leave_no_trace(train_eight, monkeypatch, accumulate):
    """Of two batches that make a step one bad one is enough."""
    spoil(monkeypatch, dict(zip((3, 7, 11), BAD.values(), strict=True)))
    outcome, folder = train_eight(f"accumulate={accumulate}")
    assert outcome.status == 0, outcome.stderr
    state = progress(folder)
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


def test_too_many_in_a_row_end_the_run_and_leave_the_checkpoint(train_eight, monkeypatch):
    monkeypatch.setattr("paddle_dialog.training.run.MAX_SKIPPED", 3)
    spoil(monkeypatch, {2: BAD["nan"], 4: BAD["nan"]} | dict.fromkeys(range(6, 9), BAD["nan"]))
    outcome, folder = train_eight()
    assert "step 8: the loss or gradient of 3 steps in a row was not finite" in outcome.error_line()
    state = progress(folder)
    assert (state["step"], state["skipped"]) == (6, 3)
    assert all(np.isfinite(value).all() for value in load_file(folder / "last/model.safetensors").values())


def test_a_dev_perplexity_that_is_no_number_is_never_the_best(train_eight, monkeypatch):
    """One dev batch an evaluation; first the first of two evaluations is spoilt, then both."""
    spoil(monkeypatch, {}, evaluations=[1, 3, 4])
    outcome, folder = train_eight()
    assert outcome.status == 0, outcome.stderr
    assert "step 4 dev perplexity nan\n" in outcome.stderr and "at step 8" in outcome.stdout
    state = progress(folder)
    assert state["best_step"] == 8 and math.isnan(state["curve"][0][1])
    assert (folder / "best").is_dir()
    outcome, folder = train_eight(more=["--overwrite"])
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
