"""Kill a training of two processes at random moments, resume it, and compare its files with an undisturbed run's.

python tests/kill_two_processes.py 20
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from test_distributed import BATCH, STEPS, Corpus, finish, launch, progress, wait_for_step, worker_logs

FILES = [f"{name}.safetensors" for name in ("last/model", "last/optimizer", "best/model")]


def workers(launcher: int) -> list[int]:
    """Return the processes that a launcher has started."""
    found = subprocess.run(["pgrep", "-P", str(launcher)], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def killed_and_resumed(corpus: Corpus, whole: Path, trial: int) -> str:
    """Return what was killed when, once the resumed run has ended with the files of the whole one."""
    step, delay = random.randint(1, STEPS - 1), random.uniform(0, 0.2)
    victims = random.choice([[0], [1], [0, 1]])
    recipe = corpus.recipe(f"killed{trial}", BATCH, dropout=0.3)
    folder = corpus.folder / f"killed{trial}"
    launched = launch(corpus, recipe)
    wait_for_step(launched, folder, step)
    processes = workers(launched.pid)
    time.sleep(delay)
    for victim in victims:
        os.kill(processes[victim], signal.SIGKILL)
    assert finish(launched) != 0, "nothing was killed"
    # Before the first checkpoint there is nothing to resume, and the run begins again.
    assert finish(launch(corpus, recipe, "--resume", "auto")) == 0, worker_logs(corpus)
    lines = worker_logs(corpus)[0].splitlines()
    resumed = next(line for line in lines if "resumed from" in line or "the run begins" in line)
    expected, found = progress(whole), progress(folder)
    different = [key for key in expected.keys() - {"seconds"} if expected[key] != found[key]]
    different += [name for name in FILES if (whole / name).read_bytes() != (folder / name).read_bytes()]
    assert not different, (trial, step, victims, different)
    shutil.rmtree(folder)
    return f"killed rank {victims} {delay * 1000:.0f} ms after step {step}; {resumed[20:]}"


def main(times: int) -> None:
    """Run the trials and print a line for each."""
    with tempfile.TemporaryDirectory() as name:
        corpus = Corpus(Path(name))
        assert finish(launch(corpus, corpus.recipe("whole", BATCH, dropout=0.3))) == 0, worker_logs(corpus)
        for trial in range(1, times + 1):
            told = killed_and_resumed(corpus, corpus.folder / "whole", trial)
            print(f"{trial} of {times}: {told.replace(name, '')}: the same bits", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
