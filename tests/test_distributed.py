"""Two processes under Paddle's launcher train as one: the same curve, the same stop, one end for both."""

from __future__ import annotations

import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import paddle
import pytest
from command import ROOT, progress, run_here
from conftest import write_couplets
from safetensors.numpy import load_file

from paddle_dialog.training import distributed

BATCH, EPOCHS = 8, 4
RECIPE = """
task: couplet
model: {{name: lstm_attention, embedding_size: 16, hidden_size: 24, num_layers: 1, dropout: {dropout}}}
data: {{train: {folder}/train.tsv, dev: {folder}/dev.tsv, max_length: 12, batch_size: {batch}}}
training: {{epochs: 4, learning_rate: 0.005, schedule: cosine, warmup_steps: 4, clip_norm: 1.0, accumulate: 2,
  label_smoothing: 0.1, log_every: 1, eval_every: 10, save_every: 3}}
rules: {{enabled: false}}
output_dir: {folder}/{name}
"""


@dataclass(frozen=True)
class Corpus:
    """A folder with couplets: 13 batches of 16 and a rest of 5 an epoch, in 7 steps."""

    folder: Path

    def __post_init__(self):
        write_couplets(self.folder / "train.tsv", 13 * 2 * BATCH + 5, seed=1)
        write_couplets(self.folder / "dev.tsv", 31, seed=2)

    def recipe(self, name, batch, dropout=0.0):
        path = self.folder / f"{name}.yaml"
        text = RECIPE.format(folder=self.folder, name=name, batch=batch, dropout=dropout)
        path.write_text(text, encoding="utf-8")
        return path


STEPS = 7 * EPOCHS


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus(tmp_path_factory.mktemp("distributed"))


@pytest.fixture(scope="module")
def two(corpus):
    """Return the run of two processes that nobody disturbed."""
    launched = launch(corpus, corpus.recipe("two", BATCH))
    assert finish(launched) == 0, worker_logs(corpus)
    return corpus.folder / "two"


def launch(corpus, *arguments, script="tools/train.py"):
    """Start the training command in two processes."""
    command = [sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2"]
    command += ["--log_dir", corpus.folder / "log", "--log_overwrite", "1", script, "-c", *arguments]
    with (corpus.folder / "launcher.out").open("wb") as out:
        return subprocess.Popen(
            [*map(str, command)],
            cwd=ROOT,
            # Below the ports that the system gives to connections, which could take the store's before it does.
            env={**os.environ, "OMP_NUM_THREADS": "1", "PORT_RANGE": "21000:32000"},
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def finish(launched):
    try:
        return launched.wait(timeout=600)
    except subprocess.TimeoutExpired:
        launched.terminate()  # the launcher ends its processes
        launched.wait(timeout=120)
        raise


def worker_logs(corpus):
    logs = (corpus.folder / "log" / f"workerlog.{rank}" for rank in range(2))
    return [log.read_text(encoding="utf-8") if log.exists() else "" for log in logs]


def wait_for_step(launched, folder, step):
    log = folder / "train.log"
    end = time.monotonic() + 600
    while not (log.exists() and f" step {step}/{STEPS} " in log.read_text(encoding="utf-8")):
        assert launched.poll() is None and time.monotonic() < end
        time.sleep(0.01)


def test_signals_do_not_break_a_wait_for_the_others(monkeypatch):
    """They come all the time, so during the calls too; Paddle's own client of the store fails at the first."""
    port = free_port()
    store = paddle.base.core.TCPStore("127.0.0.1", port, True, 1, 60)
    monkeypatch.setattr(paddle.base.core, "create_or_get_global_tcp_store", lambda: store)
    monkeypatch.setattr(distributed, "num_ranks", lambda: 2)
    monkeypatch.setattr(distributed, "_barriers", itertools.count(1))
    came: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    main, ended = threading.main_thread().ident, threading.Event()

    def disturb():
        while not ended.wait(0.001):
            signal.pthread_kill(main, signal.SIGTERM)

    def arrive():
        while len(came) < 10 and not ended.is_set():
            time.sleep(0.01)
        other = paddle.base.core.TCPStore("127.0.0.1", port, False, 1, 60)
        other.add("paddle_dialog/arrived", 1)

    threads = [threading.Thread(target=work) for work in (disturb, arrive)]
    try:
        for thread in threads:
            thread.start()
        distributed.barrier()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        signal.signal(signal.SIGTERM, previous)
    assert len(came) >= 10


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def losses(folder):
    return [float(loss) for loss in re.findall(r" loss (\S+) ", (folder / "train.log").read_text("utf-8"))]


def test_two_processes_follow_the_curve_of_one_with_the_double_batch(corpus, two):
    outcome = run_here("train", "-c", corpus.recipe("one", 2 * BATCH))
    assert outcome.status == 0, outcome.stderr
    one = corpus.folder / "one"
    assert len(losses(one)) == len(losses(two)) == STEPS
    np.testing.assert_allclose(losses(two), losses(one), atol=2e-4)  # four decimals are logged
    ours, theirs = progress(two), progress(one)
    assert ours["step"] == theirs["step"] == STEPS and ours["best_step"] == theirs["best_step"]
    np.testing.assert_allclose(ours["curve"], theirs["curve"], rtol=1e-4)
    weights, others = (load_file(folder / "last" / "model.safetensors") for folder in (two, one))
    assert all(np.allclose(weights[name], others[name], atol=1e-3) for name in others)
    assert sorted(path.name for path in two.iterdir()) == sorted(path.name for path in one.iterdir())


def test_a_run_of_two_survives_a_lost_process_and_a_signal(corpus, two):
    folder = corpus.folder / "disturbed"
    recipe = corpus.recipe("disturbed", BATCH)

    assert finish(launch(corpus, recipe, script="tests/train_losing_a_process.py")) not in (0, None)
    log, told = worker_logs(corpus)[0], (corpus.folder / "launcher.out").read_text()
    assert "Container failed" in told and "terminate called" not in log and "Traceback" not in log
    assert f" step 7/{STEPS} " in log and f" step 8/{STEPS} " not in log
    # The launcher ends a process that outlives another by seconds, and says which one failed.
    assert "error: another process of this run has ended" in log or re.search(r"rank 1 status failed", told)

    refused = run_here("train", "-c", recipe, "--resume", "auto")
    assert "started with 2 processes and data.batch_size 8, and this is 1 with 8" in refused.error_line()

    launched = launch(corpus, recipe, "--resume", "auto")
    wait_for_step(launched, folder, 9)
    launched.send_signal(signal.SIGTERM)
    assert finish(launched) not in (0, None)
    stopped = progress(folder)
    assert 9 <= stopped["step"] < STEPS
    assert f"stopped at step {stopped['step']}; --resume auto continues" in worker_logs(corpus)[0]
    assert all("Traceback" not in log for log in worker_logs(corpus))

    assert finish(launch(corpus, recipe, "--resume", "auto")) == 0, worker_logs(corpus)
    expected, found = progress(two), progress(folder)
    for key in expected.keys() - {"seconds"}:
        assert found[key] == expected[key], key
    for name in ("last/model", "last/optimizer", "best/model"):
        content = [(run / f"{name}.safetensors").read_bytes() for run in (folder, two)]
        assert content[0] == content[1], name
