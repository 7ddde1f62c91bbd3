"""Bad input, files and folders: one plain line that says what is wrong and where, status 2, nothing lost."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from command import run, run_here, start
from filelock import FileLock
from safetensors.numpy import load_file, save

FIRST = "天山春红风"
ONE = np.ones(1, np.float32)
PAIR = f"{FIRST}\t地水秋绿月\n"


@pytest.fixture
def train_on(lstm, tmp_path):
    """Return a function that gives the train command a file of these bytes, and its outcome."""

    def run_it(content, *arguments):
        file = tmp_path / "couplets.tsv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        chosen = ("-o", f"data.train={file}", "-o", f"output_dir={tmp_path / 'run'}")
        return run_here("train", "-c", lstm.config, *chosen, *arguments)

    return run_it


@pytest.fixture
def predict_lines(lstm, tmp_path):
    """Return a function that has these bytes answered by `--input`, and the outcome."""

    def run_it(content, *arguments):
        file = tmp_path / "firsts.txt"
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return run_here("predict", "-c", lstm.config, "--input", file, "--json", *arguments)

    return run_it


def firsts_of(outcome):
    return [json.loads(line)["first"] for line in outcome.stdout.splitlines()]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ":? the file is empty"),
        ("\n \n", "no couplet in this file"),
        (PAIR + FIRST + "\n", "couplets.tsv:2: 1 column found; a line must be 上联<TAB>下联"),
        (PAIR * 2 + "天\t地\t人\n", "couplets.tsv:3: 3 columns found"),
        (PAIR.encode() + "天山\t地水\n".encode("gb18030"), "couplets.tsv:2: not UTF-8 (byte 1 of the line"),
        (PAIR + "hello\tworld\n", "couplets.tsv:2: the first line (上联) has no hanzi: 'hello'"),
        (PAIR + "天山\t \n", "couplets.tsv:2: the second line (下联) is empty"),
        (f"{'天' * 500}\t{'地' * 500}\n", "max_length: every couplet has a line of more than 12 characters"),
    ],
    ids=["empty", "blank", "one column", "three columns", "GB18030", "Latin", "no 下联", "500 characters"],
)
def test_training_data_that_cannot_be_used(train_on, tmp_path, content, said):
    outcome = train_on(content)
    assert said.removeprefix(":? ") in outcome.error_line()
    assert outcome.stdout == ""
    assert not (tmp_path / "run" / "last").exists()


def test_a_missing_file_is_named_by_the_real_command(lstm, tmp_path):
    outcome = run(
        "train", "-c", lstm.config, "-o", "data.train=nowhere.tsv", "-o", f"output_dir={tmp_path}/r"
    )
    assert outcome.error_line().startswith("error: nowhere.tsv: no such file")


def test_evaluation_names_the_line_too(lstm, tmp_path):
    file = tmp_path / "dev.tsv"
    file.write_text(PAIR + "天山 地水\n", encoding="utf-8")
    outcome = run_here("evaluate", "-c", lstm.config, "--data", file)
    assert f"{file}:2: 1 column found" in outcome.error_line()
    assert "no such file" in run_here("evaluate", "-c", lstm.config, "--data", "nowhere.tsv").error_line()


def test_byte_order_mark_and_crlf_change_nothing(lstm, predict_lines, tmp_path):
    assert predict_lines(f"\ufeff{FIRST}\r\n高来\r\n").stdout == predict_lines(f"{FIRST}\n高来\n").stdout
    plain, windows = tmp_path / "plain.tsv", tmp_path / "windows.tsv"
    plain.write_text(PAIR * 3, encoding="utf-8")
    windows.write_bytes(b"\xef\xbb\xbf" + (PAIR * 3).replace("\n", "\r\n").encode())
    one, other = (run_here("evaluate", "-c", lstm.config, "--json", "--data", f) for f in (plain, windows))
    assert one.status == 0 and one.stdout == other.stdout


def test_an_overlong_couplet_is_skipped_and_counted(lstm, tmp_path):
    file = tmp_path / "dev.tsv"
    file.write_text(PAIR + f"{'天' * 500}\t{'地' * 500}\n", encoding="utf-8")
    outcome = run_here("evaluate", "-c", lstm.config, "--data", file, "--json")
    metrics = json.loads(outcome.stdout)
    assert (metrics["n"], metrics["skipped"]) == (1, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the 上联 is empty"),
        (" 　\t", "the 上联 is empty"),
        ("hello", "'hello' has no Chinese character"),
        ("，。！", "'，。！' has no Chinese character"),
        ("天" * 500, "has 500 characters, and this model reads up to 12"),
        ("天" * 13, "has 13 characters, and this model reads up to 12"),
    ],
    ids=["empty", "blank", "Latin", "punctuation", "500", "one too long"],
)
def test_a_first_line_that_cannot_be_answered(lstm, text, said):
    outcome = run_here("predict", "-c", lstm.config, FIRST, text)
    assert said in outcome.error_line()
    assert outcome.stdout == ""


def test_unknown_characters_are_answered_all_the_same(trained):
    for model in trained.values():
        outcome = run_here("predict", "-c", model.config, "--json", "龘山𠮷A红", "鱻")
        assert outcome.status == 0, outcome.stderr
        assert firsts_of(outcome) == ["龘山𠮷A红", "鱻"]
        assert "<unk>" not in outcome.stdout


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("hello", "'hello' has no Chinese character"),
        ("天" * 500, "has 500 characters"),
        ("天山".encode("gb18030"), "not UTF-8"),
    ],
    ids=["Latin", "500", "GB18030"],
)
@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_a_faulty_line_of_an_input_is_numbered_and_those_before_it_answered(
    predict_lines, tmp_path, fault, said, batch_size
):
    fault = fault.encode() if isinstance(fault, str) else fault
    content = f"{FIRST}\n\n高来\n风红\n".encode() + fault + "\n春风\n".encode()
    outcome = predict_lines(content, "-o", f"decoding.batch_size={batch_size}")
    assert outcome.error_line().startswith(f"error: {tmp_path}/firsts.txt:5: ")
    assert said in outcome.error_line()
    assert firsts_of(outcome) == [FIRST, "高来", "风红"]


def test_a_faulty_line_of_standard_input_is_numbered(lstm):
    content = f"{FIRST}\n".encode() + "天山\n".encode("gb18030")
    outcome = run("predict", "-c", lstm.config, "--json", stdin=content)
    assert "standard input:2: not UTF-8" in outcome.error_line()
    assert firsts_of(outcome) == [FIRST]


def test_empty_or_missing_input(lstm, predict_lines):
    assert "the file is empty" in predict_lines("").error_line()
    assert "standard input: holds no text" in run_here("predict", "-c", lstm.config).error_line()
    missing = run_here("predict", "-c", lstm.config, "--input", "nowhere.txt")
    assert "nowhere.txt: no such file" in missing.error_line()


def test_a_text_of_another_encoding_on_the_command_line(lstm):
    outcome = run_here("predict", "-c", lstm.config, "\udcd5\udce2")  # as Python hands over such bytes
    assert "not UTF-8" in outcome.error_line()


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("data.trian=x.tsv", "data.trian: unknown key; did you mean train?"),
        ("training.epochs=many", "training.epochs"),
        ("task=coplet", "task: 'coplet' is unknown; there are couplet"),
        ("model.name=gru", "model.name"),
        ("nonsense", "nonsense"),
    ],
)
@pytest.mark.parametrize("tool", ["train", "predict"])
def test_wrong_settings(lstm, tool, override, said):
    assert said in run_here(tool, "-c", lstm.config, "-o", override).error_line()


@pytest.mark.parametrize("tool", ["train", "evaluate", "predict", "summary"])
def test_wrong_usage(lstm, tool):
    assert "-c/--config" in run_here(tool).error_line()
    assert "--wrong" in run_here(tool, "-c", lstm.config, "--wrong").error_line()
    assert "nowhere.yaml: no such file" in run_here(tool, "-c", "nowhere.yaml").error_line()
    assert "--device is 'tpu'" in run_here(tool, "-c", lstm.config, "--device", "tpu").error_line()


def test_wrong_numbers_and_contradictions(lstm):
    predict = ("predict", "-c", lstm.config)
    assert "'0' is not a whole number of 1 to 1000" in run_here(*predict, "--n-best", "0").error_line()
    assert "not both" in run_here(*predict, FIRST, "--input", "-").error_line()
    greedy = run_here(*predict, FIRST, "--n-best", 2, "-o", "decoding.strategy=greedy")
    assert "greedy search gives one candidate" in greedy.error_line()
    summary = run_here("summary", "-c", lstm.config, "--vocab-size", "4")
    assert "'4' is not a whole number of 5 to 1000000" in summary.error_line()


def test_a_gpu_where_there_is_none(lstm):
    paddle = pytest.importorskip("paddle")
    if paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count():
        pytest.skip("this machine has one")
    for tool in ("train", "predict"):
        assert "--device is 'gpu'" in run_here(tool, "-c", lstm.config, "--device", "gpu").error_line()


def test_evaluation_without_data(lstm, tmp_path):
    outcome = run_here("evaluate", "-c", lstm.config, "-o", "data.dev=null")
    assert "name a file with --data, or set data.dev" in outcome.error_line()


@pytest.fixture
def damaged(lstm, tmp_path):
    """Return a copy of a good bundle, to be spoilt."""
    return shutil.copytree(lstm.folder / "best", tmp_path / "bundle")


def weights_error(lstm, folder, *arguments):
    outcome = run_here("predict", "-c", lstm.config, "--weights", folder, FIRST, *arguments)
    assert outcome.stdout == ""
    return outcome.error_line()


def test_a_model_of_another_task(lstm, damaged):
    manifest = json.loads((damaged / "bundle.json").read_text())
    (damaged / "bundle.json").write_text(json.dumps(manifest | {"task": "empathetic"}))
    assert "is a model of the task 'empathetic', and the config is of 'couplet'" in weights_error(
        lstm, damaged
    )


def tampered(folder, name, content):
    """Write a file of a bundle, and its checksum; return the folder."""
    manifest = json.loads((folder / "bundle.json").read_text())
    (folder / name).write_bytes(content)
    manifest["sha256"][name] = hashlib.sha256(content).hexdigest()
    (folder / "bundle.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    "name", ["../text.vocabulary.txt", "/etc/hostname", "a/b.bin", "..", "", "bundle.json"]
)
def test_a_bundle_names_no_file_outside_of_it(damaged, tmp_path, name):
    manifest = json.loads((damaged / "bundle.json").read_text())
    manifest["sha256"][name] = manifest["sha256"]["text.vocabulary.txt"]
    (damaged / "bundle.json").write_text(json.dumps(manifest))
    outcome = run_here("export", "--weights", damaged, "--output", tmp_path / "out" / "deep")
    assert (
        f"{damaged}/bundle.json: is damaged or harmful: {name!r} is not the plain name"
        in outcome.error_line()
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_stands_in_a_bundle_but_is_no_file(damaged, kind):
    path = damaged / "text.vocabulary.txt"
    kept = path.rename(damaged.with_name("kept.txt"))
    make = {"link": lambda: path.symlink_to(kept), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}
    make[kind]()
    line = run_here("predict", "--weights", damaged, "春").error_line()
    assert f"{path}: is a link or no file" in line


@pytest.mark.parametrize(
    "config",
    [
        "",
        "- a",
        "model: {}",
        "task: [couplet]",
        "task: couplet\ndata: !!python/name:os.system x",
        "[" * 2000,
        "\0",
    ],
    ids=["empty", "a list", "no task", "a task that is a list", "tagged", "deep", "NUL"],
)
def test_a_bundle_whose_damage_has_the_right_checksum(lstm, damaged, config):
    assert f"{damaged}/config.yaml" in weights_error(lstm, tampered(damaged, "config.yaml", config.encode()))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("progress.json", '{"step": "many"}'),
        ("progress.json", '{"step": 1' + "0" * 30 + "}"),
        ("progress.json", '{"epoch": -1}'),
        ("progress.json", '{"best_figure": NaN}'),
        ("progress.json", '{"scaler": {"scale": "large"}}'),
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


MOMENT = "output.weight::moment1_0"
WRONG_ARRAYS = {
    "missing": (lambda arrays: arrays.pop(MOMENT), "moment1_0 is missing"),
    "unknown": (lambda arrays: arrays.update({"output.weight::moment9_0": ONE}), "moment9_0 is unknown"),
    "shape": (lambda arrays: arrays.update({MOMENT: arrays[MOMENT][:1]}), "moment1_0 has shape [1, "),
    "type": (lambda arrays: arrays.update({MOMENT: arrays[MOMENT].astype(int)}), "int64 and not of floats"),
    "NaN": (lambda arrays: arrays[MOMENT].fill(np.nan), "moment1_0 has a value that is not finite"),
    "empty": (lambda arrays: arrays.clear(), "is missing"),
}


@pytest.mark.parametrize("kind", WRONG_ARRAYS)
def test_a_checkpoint_with_wrong_arrays(lstm, tmp_path, kind):
    last = shutil.copytree(lstm.folder / "last", tmp_path / "run" / "last")
    arrays = {name: array.copy() for name, array in load_file(last / "optimizer.safetensors").items()}
    change, message = WRONG_ARRAYS[kind]
    change(arrays)
    tampered(last, "optimizer.safetensors", save(arrays))
    arguments = ("--resume", "auto", "-o", f"output_dir={tmp_path / 'run'}")
    line = run_here("train", "-c", lstm.config, *arguments).error_line()
    assert f"{last}/optimizer.safetensors: is damaged: " in line and message in line


def test_a_checkpoint_whose_weights_are_not_finite(lstm, tmp_path):
    last = shutil.copytree(lstm.folder / "last", tmp_path / "run" / "last")
    weights = {name: array.copy() for name, array in load_file(last / "model.safetensors").items()}
    weights["output.weight"][0, 0] = np.nan
    tampered(last, "model.safetensors", save(weights))
    arguments = ("--resume", "auto", "-o", f"output_dir={tmp_path / 'run'}")
    line = run_here("train", "-c", lstm.config, *arguments).error_line()
    assert f"{last}: is damaged: output.weight has a value that is not finite" in line


def test_two_runs_at_work_in_one_folder(train_on, tmp_path):
    (tmp_path / "run").mkdir()
    with FileLock(tmp_path / "run" / ".lock"):
        line = train_on(PAIR * 100, "--overwrite").error_line()
    assert f"output_dir: {tmp_path / 'run'}: another run is at work in this folder" in line
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]


def test_a_model_that_the_decoding_settings_do_not_fit(trained):
    lstm, transformer = trained["lstm"], trained["transformer"]
    error = weights_error(lstm, transformer.folder / "best", "-o", "decoding.max_length=16")
    assert "decoding.max_length must be below model.max_positions (16)" in error


def test_a_finished_model_is_nothing_to_resume(lstm, tmp_path):
    resume = ("--resume", lstm.folder / "best", "-o", f"output_dir={tmp_path}/run")
    assert "no training state" in run_here("train", "-c", lstm.config, *resume).error_line()
    missing = run_here("train", "-c", lstm.config, "--resume", "nowhere", "-o", f"output_dir={tmp_path}/run")
    assert "--resume nowhere: no such folder" in missing.error_line()


def test_two_runs_do_not_share_a_folder(trained):
    lstm, transformer = trained["lstm"], trained["transformer"]
    outcome = run_here("train", "-c", lstm.config, "--resume", transformer.folder)
    assert "already holds another run" in outcome.error_line()


def test_a_folder_whose_name_is_not_utf_8_is_trained_in_and_answered_from(lstm, train_on, tmp_path):
    folder = tmp_path / os.fsdecode("我的".encode("gbk"))
    outcome = train_on(PAIR * 40, "-o", f"output_dir={folder / 'run'}", "-o", "training.max_steps=1")
    assert outcome.status == 0, outcome.stderr
    assert "VisualDL's log cannot be written" in outcome.stderr and r"\udcce" in outcome.stdout
    assert run_here("predict", "--weights", folder / "run" / "best", FIRST).status == 0
    assert r"\udcce" in run_here("predict", "-c", folder / "nowhere.yaml", FIRST).error_line()


def test_a_name_that_is_too_long_and_an_output_that_is_full(lstm, tmp_path):
    long = tmp_path / ("x" * 300)
    for arguments in (
        ("predict", "--weights", long, FIRST),
        ("train", "-c", lstm.config, "-o", f"output_dir={long}"),
    ):
        assert "File name too long" in run_here(*arguments).error_line()
    with Path("/dev/full").open("w") as full:
        process = start("predict", "-c", lstm.config, "--weights", lstm.folder / "best", FIRST, stdout=full)
        _, told = process.communicate()
    assert process.returncode == 2 and told.decode().endswith("error: the output: No space left on device\n")


@pytest.mark.parametrize("name", ["file/run", "file"])
def test_an_output_folder_that_cannot_be_written(lstm, tmp_path, name):
    (tmp_path / "file").write_text("")
    outcome = run_here("train", "-c", lstm.config, "-o", f"output_dir={tmp_path / name}")
    assert f"output_dir: {tmp_path / name}: cannot be written to" in outcome.error_line()
    assert (tmp_path / "file").read_text() == ""


def test_predictions_that_cannot_be_written_are_told_before_the_work(lstm, tmp_path):
    for place in (tmp_path, tmp_path / "none" / "out.jsonl"):
        outcome = run_here("evaluate", "-c", lstm.config, "--predictions", place)
        assert f"{place}: cannot be written" in outcome.error_line()


def test_a_failed_evaluation_leaves_earlier_predictions_alone(lstm, tmp_path):
    earlier, bad = tmp_path / "out.jsonl", tmp_path / "bad.tsv"
    earlier.write_text("earlier")
    bad.write_text("天山\n", encoding="utf-8")
    run_here("evaluate", "-c", lstm.config, "--data", bad, "--predictions", earlier).error_line()
    assert earlier.read_text() == "earlier"
