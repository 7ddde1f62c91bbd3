"""tools/predict.py: every way of input, its answers, and several processes."""

import os
import pty
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import children, records, run, run_here, start, texts
from conftest import UPPER
from couplet_toys import FORM
from serving_toys import PATIENCE, eventually

import paddle_dialog

FIRST = "天山春红风"


def test_predict_answers_texts_in_json(model):
    outcome = run("predict", "-c", model.config, "--json", FIRST, "高来", "--n-best", 3)
    found = records(outcome)
    assert outcome.stderr == f"weights: {model.folder}/best\n"
    assert [record["first"] for record in found] == [FIRST, "高来"]
    kinds = {name: type(value) for name, value in FORM.items()}
    for record in found:
        assert record.keys() == {"first", "predictions"}
        assert len(record["predictions"]) == 3
        scores = [candidate["score"] for candidate in record["predictions"]]
        assert all(isinstance(score, float) and score < 0 for score in scores)
        for candidate in record["predictions"]:
            assert candidate.keys() == {"text", "score", "form"}
            assert {name: type(value) for name, value in candidate["form"].items()} == kinds
        assert len({candidate["text"] for candidate in record["predictions"]}) == 3
    assert "\\u" not in outcome.stdout


def test_predict_answers_readably(lstm):
    (answer,) = texts(run_here("predict", "-c", lstm.config, FIRST, "--json"))
    one = run_here("predict", "-c", lstm.config, FIRST)
    assert one.stdout == f"{FIRST}\t{answer[0]}\n"
    many = run_here("predict", "-c", lstm.config, FIRST, "--n-best", 2).stdout.splitlines()
    assert many[0] == FIRST and len(many) == 3
    assert re.fullmatch(rf" +-\d+\.\d{{4}}  {answer[0]}", many[1])


def test_as_many_candidates_as_may_be_asked_for(lstm):
    outcome = run_here("predict", "-c", lstm.config, "--json", FIRST, "--n-best", 1000)
    assert outcome.status == 0 and len(texts(outcome)[0]) > 100, outcome.stderr


def test_options_may_stand_between_texts(lstm):
    usual = run_here("predict", "-c", lstm.config, "--json", FIRST, "高来")
    assert run_here("predict", FIRST, "-c", lstm.config, "高来", "--json").stdout == usual.stdout


def test_every_way_of_input_gives_the_same_answers(model, tmp_path):
    lines = [FIRST, "来高", "风红春山天"]
    expected = run_here("predict", "-c", model.config, "--json", *lines).stdout
    text = "\n".join(lines) + "\n"
    file = tmp_path / "firsts.txt"
    file.write_text(text, encoding="utf-8")
    data = text.encode("utf-8")
    assert len(expected.splitlines()) == 3
    for arguments, stdin in ((["--input", file], b""), (["--input", "-"], data), ([], data)):
        assert run_here("predict", "-c", model.config, "--json", *arguments, stdin=stdin).stdout == expected


def test_stdin_is_utf8_whatever_the_locale(lstm):
    latin = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    piped = run("predict", "-c", lstm.config, stdin=f"\ufeff{FIRST}\r\n".encode(), environment=latin)
    assert piped.status == 0, piped.stderr
    assert piped.stdout == run_here("predict", "-c", lstm.config, FIRST).stdout


def test_a_terminal_is_asked_line_by_line(lstm):
    ours, theirs = pty.openpty()
    process = start("predict", "-c", lstm.config, stdin=theirs)
    os.close(theirs)
    os.write(ours, f"{FIRST}\nabc\n\n高来\n".encode() + b"\x04")
    out, err = (stream.decode() for stream in process.communicate(timeout=300))
    os.close(ours)
    assert process.returncode == 0
    assert [line.split("\t")[0] for line in out.splitlines()] == [FIRST, "高来"]  # no prompt among results
    assert "Ctrl-D ends" in err and "error: 'abc' has no Chinese character" in err


def test_sampling_repeats_with_its_seed_and_varies_without(model):
    arguments = ("-c", model.config, "--json", FIRST, "--n-best", 5, "-o", "decoding.strategy=sample")
    one, again, other = (
        texts(run_here("predict", *arguments, "-o", f"seed={seed}", "-o", "decoding.temperature=2"))
        for seed in (1, 1, 2)
    )
    assert one == again != other
    assert len(one[0]) == 5


def test_a_bundle_answers_from_python(model):
    couplet = paddle_dialog.load(model.folder / "best")
    candidates = couplet.predict([FIRST, "高来"], n_best=3)
    found = records(run_here("predict", "-c", model.config, "--json", "--n-best", 3, FIRST, "高来"))
    assert [[p.text for p in line] for line in candidates] == [
        [p["text"] for p in record["predictions"]] for record in found
    ]
    assert candidates[0][0].score == pytest.approx(found[0]["predictions"][0]["score"], abs=1e-4)
    assert candidates[0][0].form.as_dict() == found[0]["predictions"][0]["form"]


def test_a_reader_that_goes_away_is_no_error(lstm):
    process = start("predict", "-c", lstm.config, "--input", "-", stdin=subprocess.PIPE)
    process.stdout.close()
    _, err = process.communicate(f"{FIRST}\n".encode() * 3)
    assert process.returncode == 0
    assert b"Traceback" not in err and b"Exception" not in err


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one process answers")


def lines(count):
    generator = random.Random(4)
    return ["".join(generator.choices(UPPER, k=generator.randint(3, 6))) for _ in range(count)]


@pytest.fixture
def endless(lstm):
    """Yield a command with two processes, an open input, and its first 5 batches of 64, of which one is answered."""
    words = ("-c", lstm.config, "--input", "-", "--workers", 2)
    process = start("predict", *words, stdin=subprocess.PIPE, text=True, start_new_session=True)
    process.stdin.write("".join(f"{line}\n" for line in lines(320)))
    process.stdin.flush()
    assert process.stdout.readline().startswith(lines(1)[0])
    yield process
    process.kill()
    process.communicate(timeout=PATIENCE)


@linux_only
def test_processes_answer_in_the_order_of_the_input(lstm, tmp_path):
    file = tmp_path / "firsts.txt"
    file.write_text("\n".join(lines(300)), encoding="utf-8")
    one = run_here("predict", "-c", lstm.config, "--input", file, "--workers", 1)
    three = run("predict", "-c", lstm.config, "--input", file, "--workers", 3)
    assert (three.status, three.stdout) == (0, one.stdout)
    assert [line.split("\t")[0] for line in three.stdout.splitlines()] == lines(300)


@linux_only
def test_lines_before_a_faulty_one_are_answered(lstm, tmp_path):
    file = tmp_path / "firsts.txt"
    file.write_text("\n".join([*lines(143), "no couplet", *lines(40)]), encoding="utf-8")
    outcome = run("predict", "-c", lstm.config, "--input", file, "--workers", 2)
    assert f"{file}:144: 'nocouplet'" in outcome.error_line().replace("no couplet", "nocouplet")
    assert [line.split("\t")[0] for line in outcome.stdout.splitlines()] == lines(143)


@linux_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_processes_end_with_the_command_without_a_word_more(endless, number):
    workers = children(endless.pid)
    assert len(workers) == 2
    if number == signal.SIGINT:
        os.killpg(endless.pid, number)  # as a terminal does, all at once
    else:
        endless.send_signal(number)
    _, err = endless.communicate(timeout=PATIENCE)
    assert "Traceback" not in err
    if number == signal.SIGINT:
        assert endless.returncode == 130 and err.splitlines()[-1] == "interrupted"
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


@linux_only
def test_a_process_that_is_killed_is_told(endless):
    os.kill(children(endless.pid)[0], signal.SIGKILL)
    _, err = endless.communicate("".join(f"{line}\n" for line in lines(640)), timeout=PATIENCE)
    assert endless.returncode == 2
    assert err.splitlines()[-1].startswith("error: a process was killed") and "Traceback" not in err


@linux_only
def test_where_paddle_is_loaded_one_process_answers(lstm, tmp_path):
    file = tmp_path / "firsts.txt"
    file.write_text("\n".join(lines(9)), encoding="utf-8")
    outcome = run_here("predict", "-c", lstm.config, "--input", file, "--workers", 2)
    assert outcome.status == 0 and "answering in one process" in outcome.stderr
    assert len(outcome.stdout.splitlines()) == 9
