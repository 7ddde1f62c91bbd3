"""Bad input, files and folders: one plain line that says what is wrong and where, status 2, nothing lost.

`tests/data/errors.tsv` lists commands, what is wrong with their file, and the sentence; a file whose ending counts is
{txt}, {json} or {csv} in place of {file}.
"""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from command import ROOT, run, run_here, written
from filelock import FileLock
from safetensors import numpy as tensors

FIRST = "天山春红风"
PAIR = f"{FIRST}\t地水秋绿月\n"
TABLE = (ROOT / "tests" / "data" / "errors.tsv").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("row", [line for line in TABLE if not line.startswith("#")])
def test_what_is_wrong_is_said_in_one_line(trained, tmp_path, row):
    command, content, sentence = row.split("\t")
    places = {"file": tmp_path / "file", "tmp": tmp_path, "run": tmp_path / "run"}
    places |= {ending: tmp_path / f"file.{ending}" for ending in ("txt", "json", "csv")}
    for family, model in trained.items():
        places |= {family: model.config, f"{family}_run": model.folder}
    text = content.removeprefix("gb18030:").format(**places)
    for escaped, meant in (("\\n", "\n"), ("\\t", "\t"), ("\\\\", "\\")):
        text = text.replace(escaped, meant)
    if "{file}" in command or content:
        named = next((name for name in ("txt", "json", "csv") if f"{{{name}}}" in command), "file")
        encoding = "gb18030" if content.startswith("gb18030:") else "utf-8"
        places[named].write_text(text, encoding=encoding)
    tool, *words = shlex.split(command.format(**places))
    outcome = run_here(tool, *words)
    assert sentence.replace("\\\\", "\\").format(**places) in outcome.error_line()
    assert outcome.stdout == "" or tool == "predict"
    assert not (tmp_path / "run" / "last").exists()


def firsts_of(outcome):
    return [json.loads(line)["first"] for line in outcome.stdout.splitlines()]


def test_byte_order_mark_and_crlf_change_nothing(lstm, tmp_path):
    plain, windows = (written(tmp_path, text, name) for name, text in (
        ("plain.tsv", PAIR * 3),
        ("windows.tsv", "\ufeff" + (PAIR * 3).replace("\n", "\r\n")),
    ))  # fmt: skip
    one, other = (run_here("evaluate", "-c", lstm.config, "--json", "--data", f) for f in (plain, windows))
    assert one.status == 0 and one.stdout == other.stdout


def test_an_overlong_couplet_is_skipped_and_counted(lstm, tmp_path):
    file = written(tmp_path, PAIR + f"{'天' * 500}\t{'地' * 500}\n")
    metrics = json.loads(run_here("evaluate", "-c", lstm.config, "--data", file, "--json").stdout)
    assert (metrics["n"], metrics["skipped"]) == (1, 1)


def test_unknown_characters_are_answered_all_the_same(trained):
    for model in trained.values():
        outcome = run_here("predict", "-c", model.config, "--json", "龘山𠮷A红", "鱻")
        assert outcome.status == 0, outcome.stderr
        assert firsts_of(outcome) == ["龘山𠮷A红", "鱻"]
        assert "<unk>" not in outcome.stdout


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (b"hello", "'hello' has no Chinese character"),
        (("天" * 500).encode(), "has 500 characters"),
        ("天山".encode("gb18030"), "not UTF-8"),
    ],
)
@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_a_faulty_line_of_an_input_is_numbered_and_those_before_it_answered(
    lstm, tmp_path, fault, said, batch_size, monkeypatch
):
    monkeypatch.setattr("paddle_dialog.config.schema.INPUTS_TOGETHER", batch_size)
    file = written(tmp_path, f"{FIRST}\n\n高来\n风红\n".encode() + fault + "\n春风\n".encode())
    outcome = run_here("predict", "-c", lstm.config, "--input", file, "--json")
    assert outcome.error_line().startswith(f"error: {file}:5: ") and said in outcome.error_line()
    assert firsts_of(outcome) == [FIRST, "高来", "风红"]


def test_a_faulty_line_of_standard_input_is_numbered(lstm):
    content = f"{FIRST}\n".encode() + "天山\n".encode("gb18030")
    outcome = run("predict", "-c", lstm.config, "--json", stdin=content)
    assert "standard input:2: not UTF-8" in outcome.error_line()
    assert firsts_of(outcome) == [FIRST]


def test_a_text_of_another_encoding_on_the_command_line(lstm):
    outcome = run_here("predict", "-c", lstm.config, "\udcd5\udce2")  # as Python hands over such bytes
    assert "not UTF-8" in outcome.error_line()


@pytest.fixture
def damaged(lstm, tmp_path):
    """Return a copy of a good bundle, to be spoilt."""
    return shutil.copytree(lstm.folder / "best", tmp_path / "bundle")


def with_manifest(folder, change):
    manifest = json.loads((folder / "bundle.json").read_text())
    change(manifest)
    (folder / "bundle.json").write_text(json.dumps(manifest))


def tampered(folder, name, content):
    """Write a file of a bundle, and its checksum; return the folder."""
    (folder / name).write_bytes(content)
    sums = {name: hashlib.sha256(content).hexdigest()}
    with_manifest(folder, lambda manifest: manifest["sha256"].update(sums))
    return folder


@pytest.mark.parametrize(
    "name", ["../text.vocabulary.txt", "/etc/hostname", "a/b.bin", "..", "", "bundle.json"]
)
def test_a_bundle_names_no_file_outside_of_it(damaged, tmp_path, name):
    with_manifest(damaged, lambda m: m["sha256"].update({name: m["sha256"]["text.vocabulary.txt"]}))
    line = run_here("export", "--weights", damaged, "--output", tmp_path / "out" / "deep").error_line()
    assert f"{damaged}/bundle.json: is damaged or harmful: {name!r} is not the plain name" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["text.vocabulary.txt", "config.yaml"])
@pytest.mark.parametrize("kind", ["link", "pipe", "device", "folder"])
def test_what_is_in_a_bundle_but_is_no_file(damaged, kind, name):
    path = damaged / name
    kept = path.rename(damaged.with_name("kept.txt"))
    make = {
        "link": lambda: path.symlink_to(kept),
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
    }
    make[kind]()
    line = run_here("predict", "--weights", damaged, "春").error_line()
    assert str(path) in line


TAGGED, DEEP = "task: couplet\ndata: !!python/name:os.system x", "[" * 2000


@pytest.mark.parametrize(
    "config",
    ["", "- a", "model: {}", "task: [couplet]", TAGGED, DEEP, "\0"],
    ids=["empty", "a list", "no task", "a task that is a list", "tagged", "deep", "NUL"],
)
def test_a_bundle_whose_damage_has_the_right_checksum(lstm, damaged, config):
    folder = tampered(damaged, "config.yaml", config.encode())
    outcome = run_here("predict", "-c", lstm.config, "--weights", folder, FIRST)
    assert f"{damaged}/config.yaml" in outcome.error_line() and outcome.stdout == ""


def test_weights_that_are_no_numbers_and_a_vocabulary_that_is_missing(damaged):
    weights = tensors.load_file(damaged / "model.safetensors")
    name = next(iter(weights))
    spoilt = {**weights, name: np.full_like(weights[name], np.nan)}
    tampered(damaged, "model.safetensors", tensors.save(spoilt))
    line = run_here("predict", "--weights", damaged, FIRST).error_line()
    assert f"{damaged}/model.safetensors: {name} has numbers that are not finite" in line
    tampered(damaged, "model.safetensors", tensors.save(weights))
    with_manifest(damaged, lambda manifest: manifest["sha256"].pop("text.vocabulary.txt"))
    assert "has no vocabulary 'text'" in run_here("predict", "--weights", damaged, FIRST).error_line()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("progress.json", '{"step": "many"}'),
        ("progress.json", '{"step": 1' + "0" * 30 + "}"),
        ("progress.json", '{"epoch": -1}'),
        ("progress.json", "[" * 5000),
        ("optimizer.safetensors", "garbage"),
        ("README.md", b"\xff"),
    ],
)
def test_a_checkpoint_whose_damage_has_the_right_checksum(lstm, tmp_path, name, content):
    last = shutil.copytree(lstm.folder / "last", tmp_path / "run" / "last")
    if name == "progress.json" and content.startswith("{"):
        content = json.dumps(json.loads((last / name).read_text()) | json.loads(content))
    tampered(last, name, content if isinstance(content, bytes) else content.encode())
    arguments = ("--resume", "auto", "-o", f"output_dir={tmp_path / 'run'}")
    assert str(last) in run_here("train", "-c", lstm.config, *arguments).error_line()


def test_two_runs_at_work_in_one_folder(lstm, tmp_path):
    (tmp_path / "run").mkdir()
    with FileLock(tmp_path / "run" / ".lock"):
        words = ("-o", f"output_dir={tmp_path / 'run'}", "--overwrite")
        line = run_here("train", "-c", lstm.config, *words).error_line()
    assert f"output_dir: {tmp_path / 'run'}: another run is at work in this folder" in line
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]


def test_a_folder_whose_name_is_not_utf_8_is_trained_in_and_answered_from(lstm, tmp_path):
    folder = tmp_path / os.fsdecode("我的".encode("gbk"))
    words = ("-o", f"output_dir={folder / 'run'}", "-o", "training.max_steps=1")
    outcome = run_here("train", "-c", lstm.config, *words)
    assert outcome.status == 0, outcome.stderr
    assert "VisualDL's log cannot be written" in outcome.stderr and r"\udcce" in outcome.stdout
    assert run_here("predict", "--weights", folder / "run" / "best", FIRST).status == 0
    assert r"\udcce" in run_here("predict", "-c", folder / "nowhere.yaml", FIRST).error_line()


def test_a_failed_evaluation_leaves_earlier_predictions_alone(lstm, tmp_path):
    earlier = written(tmp_path, "earlier", "out.jsonl")
    bad = written(tmp_path, "天山\n")
    run_here("evaluate", "-c", lstm.config, "--data", bad, "--predictions", earlier).error_line()
    assert earlier.read_text() == "earlier"


STREAMS = [
    ("<&-", 2, "error: standard input: holds no text; give one input a line\n"),
    (f"{FIRST} >&-", 2, "error: the output is closed; leave >&- out, or write to /dev/null\n"),
    (f"{FIRST} >/dev/full", 2, "error: the output: No space left on device\n"),
    (f"{FIRST} 2>&-", 0, FIRST),
    (f"{FIRST} 2>/dev/full", 0, FIRST),
    ("< /dev/zero", 2, "error: standard input:1: the line has more than 16,777,216 bytes; break it\n"),
    ("--input /dev/zero", 2, "error: /dev/zero:1: the line has more than 67,108,864 bytes; break it\n"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a shell and /dev/full")
@pytest.mark.parametrize(("words", "status", "said"), STREAMS)
def test_streams_that_are_closed_full_or_endless(lstm, words, status, said):
    command = f"{shlex.quote(sys.executable)} tools/predict.py -c {shlex.quote(str(lstm.config))} {words}"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == status, done.stderr
    assert done.stderr.endswith(said) if status else done.stdout.startswith(said)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one process answers")
def test_more_processes_than_files_and_a_folder_that_is_gone(lstm, tmp_path):
    script, config = ROOT / "tools" / "predict.py", shlex.quote(str(lstm.config))
    file = written(tmp_path, f"{FIRST}\n" * 300)
    python = shlex.quote(sys.executable)
    many = f"ulimit -n 256; {python} {script} -c {config} --workers 256 --input {file}"
    gone = f"mkdir gone; cd gone; rmdir ../gone; {python} {script} -c {config} 春"
    for command, said in ((many, "256 open files of ulimit -n"), (gone, "the current folder was removed")):
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=120,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 2 and said in done.stderr, done.stderr


def test_scripts_run_the_code_of_their_own_checkout(tmp_path):
    """Two checkouts, one environment: the package of the other one is installed."""
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "tools", checkout / "tools")
    (checkout / "paddle_dialog" / "commands").mkdir(parents=True)
    for package in ("paddle_dialog", "paddle_dialog/commands"):
        (checkout / package / "__init__.py").touch()
    (checkout / "paddle_dialog" / "commands" / "console.py").write_text(
        "def run_script(name):\n    raise SystemExit(name)\n"
    )
    for script in sorted((checkout / "tools").glob("*.py")):
        if script.stem != "lock":
            command = [sys.executable, script]
            done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path)
            assert done.stderr == f"{script.stem}\n"


MOMENT = "output.weight::moment1_0"
WRONG_ARRAYS = {
    "missing": (lambda arrays: arrays.pop(MOMENT), "is damaged: output.weight::moment1_0 is missing"),
    "unknown": (
        lambda arrays: arrays.update({f"{MOMENT}x": arrays[MOMENT]}),
        "is damaged: output.weight::moment1_0x is",
    ),
    "shape": (lambda arrays: arrays.update({MOMENT: arrays[MOMENT][:1]}), "moment1_0 has shape [1, "),
    "type": (lambda arrays: arrays.update({MOMENT: arrays[MOMENT].astype(int)}), "moment1_0 has type int64"),
    "NaN": (lambda arrays: arrays[MOMENT].fill(np.nan), "moment1_0 has numbers that are not finite"),
    "empty": (lambda arrays: arrays.clear(), "is missing"),
}


@pytest.mark.parametrize("kind", WRONG_ARRAYS)
def test_a_checkpoint_with_wrong_arrays(lstm, tmp_path, kind):
    last = shutil.copytree(lstm.folder / "last", tmp_path / "run" / "last")
    change, said = WRONG_ARRAYS[kind]
    arrays = {name: array.copy() for name, array in tensors.load_file(last / "optimizer.safetensors").items()}
    change(arrays)
    tampered(last, "optimizer.safetensors", tensors.save(arrays))
    arguments = ("--resume", "auto", "-o", f"output_dir={tmp_path / 'run'}")
    line = run_here("train", "-c", lstm.config, *arguments).error_line()
    assert f"{last}/optimizer.safetensors: " in line and said in line
