"""tools/predict.py in several processes: the order, faults, Ctrl-C, a process that dies, an input without an end."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import run, run_here, start
from conftest import UPPER
from serving_toys import PATIENCE, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one process answers")


def arguments(trained, *more):
    return ("-c", trained["lstm"].config, "-o", "decoding.batch_size=8", *more)


def lines(count):
    generator = random.Random(4)
    return ["".join(generator.choices(UPPER, k=generator.randint(3, 6))) for _ in range(count)]


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.fixture
def endless(trained):
    """Yield a command with two processes, an open input, and its first 5 batches, of which one is answered."""
    words = arguments(trained, "--input", "-", "--workers", 2)
    process = start("predict", *words, stdin=subprocess.PIPE, text=True, start_new_session=True)
    process.stdin.write("".join(f"{line}\n" for line in lines(40)))
    process.stdin.flush()
    assert process.stdout.readline().startswith(lines(1)[0])
    yield process
    process.kill()
    process.communicate(timeout=PATIENCE)


def test_processes_answer_in_the_order_of_the_input(trained, tmp_path):
    file = tmp_path / "firsts.txt"
    file.write_text("\n".join(lines(100)), encoding="utf-8")
    one = run_here("predict", *arguments(trained, "--input", file, "--workers", 1))
    three = run("predict", *arguments(trained, "--input", file, "--workers", 3))
    assert (three.status, three.stdout) == (0, one.stdout)
    assert [line.split("\t")[0] for line in three.stdout.splitlines()] == lines(100)


def test_lines_before_a_faulty_one_are_answered(trained, tmp_path):
    file = tmp_path / "firsts.txt"
    file.write_text("\n".join([*lines(43), "no couplet", *lines(40)]), encoding="utf-8")
    outcome = run("predict", *arguments(trained, "--input", file, "--workers", 2))
    assert f"{file}:44: 'nocouplet'" in outcome.error_line().replace("no couplet", "nocouplet")
    assert [line.split("\t")[0] for line in outcome.stdout.splitlines()] == lines(43)


def test_ctrl_c_ends_all_processes_without_a_word_more(endless):
    workers = children(endless.pid)
    assert len(workers) == 2
    os.killpg(endless.pid, signal.SIGINT)  # as a terminal does, all at once
    _, err = endless.communicate(timeout=PATIENCE)
    assert endless.returncode == 130
    assert err.splitlines()[-1] == "interrupted" and "Traceback" not in err
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_a_process_that_is_killed_is_told(endless):
    os.kill(int(children(endless.pid)[0]), signal.SIGKILL)
    _, err = endless.communicate("".join(f"{line}\n" for line in lines(80)), timeout=PATIENCE)
    assert endless.returncode == 2
    assert err.splitlines()[-1].startswith("error: a process was killed") and "Traceback" not in err


def test_where_paddle_is_loaded_one_process_answers(trained, tmp_path):
    file = tmp_path / "firsts.txt"
    file.write_text("\n".join(lines(9)), encoding="utf-8")
    outcome = run_here("predict", *arguments(trained, "--input", file, "--workers", 2))
    assert outcome.status == 0 and "answering in one process" in outcome.stderr
    assert len(outcome.stdout.splitlines()) == 9


@pytest.mark.parametrize("workers", ["0", "two", "-1"])
def test_a_number_of_workers_that_is_none(trained, workers):
    line = run_here("predict", *arguments(trained, "--input", "-", f"--workers={workers}")).error_line()
    assert f"'{workers}' is not a whole number of 1 or more" in line
