"""The commands as a user types them: what goes where, in which form, with which status."""

import dataclasses
import json
import os
import pty
import re
import subprocess
import sys

import pytest
import yaml
from command import ROOT, run, run_here, start

import paddle_dialog
from paddle_dialog.bundle import loading
from paddle_dialog.bundle.folder import load_bundle, save_bundle

FIRST = "天山春红风"
FORM = {
    "length_equal": bool,
    "punctuation_aligned": bool,
    "final_level": bool,
    "final_pair": bool,
    "tone_opposed": float,
    "repeats_mirrored": bool,
    "shares_character": bool,
}


@pytest.fixture(params=["lstm", "transformer"])
def model(request, trained):
    return trained[request.param]


@pytest.fixture
def lstm(trained):
    return trained["lstm"]


def records(outcome):
    assert outcome.status == 0, outcome.stderr
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def texts(outcome):
    return [[p["text"] for p in record["predictions"]] for record in records(outcome)]


@pytest.mark.parametrize("tool", ["train", "evaluate", "predict", "summary"])
def test_help_ends_with_an_example(tool):
    outcome = run_here(tool, "--help")
    assert (outcome.status, outcome.stderr) == (0, "")
    assert f"example: python tools/{tool}.py -c configs/" in " ".join(outcome.stdout.split())
    for option in ("--config", "--override", "--device"):
        assert option in outcome.stdout


def test_summary_counts_the_book_model():
    arguments = ("-c", "configs/reference/couplet_lstm.yaml", "--vocab-size", 7931)
    shown = run("summary", *arguments)
    assert (shown.status, shown.stderr) == (0, "")
    assert re.fullmatch(r"total +8,663,547", shown.stdout.splitlines()[-1])
    (record,) = records(run_here("summary", *arguments, "--json"))
    assert record.keys() == {"total", "modules"}
    assert record["total"] == sum(record["modules"].values()) == 8_663_547


def test_summary_follows_overrides_and_vocabulary():
    arguments = ("-c", "configs/couplet_lstm.yaml", "--json", "-o", "model.embedding_size=8")
    small, large = (records(run_here("summary", *arguments, "--vocab-size", n))[0] for n in (10, 11))
    # one token more: a row in both embedding tables, a column and a bias in the output layer
    assert large["total"] - small["total"] == 8 + 8 + 256 + 1


def test_train_reports_on_stderr_and_in_the_log_and_its_result_on_stdout(model):
    out, err = model.outcome.stdout, model.outcome.stderr
    assert re.fullmatch(
        rf"{re.escape(str(model.folder))}: step 20, best dev perplexity \d+\.\d{{3}} at step \d+\n", out
    )
    log = (model.folder / "train.log").read_text(encoding="utf-8")
    assert log in err
    for said in ("configuration:", "learning_rate: 0.02", "320 couplets", "parameters, 20 steps in all"):
        assert said in log
    assert re.search(r"step 5/20 epoch 0\.50 loss \S+ .*tokens/s reader .*% eta 0:", log)
    assert re.findall(r"step (\d+) dev perplexity", log) == ["7", "14", "20"]
    assert "Warning" not in err


def test_train_leaves_bundles_log_config_and_visualdl(model):
    names = {path.name for path in model.folder.iterdir() if not path.name.endswith(".previous")}
    assert names == {"best", "last", "vdl", "train.log", "config.yaml"}
    assert list((model.folder / "vdl").iterdir())
    for place in (model.folder, model.folder / "best", model.folder / "last"):
        saved = yaml.safe_load((place / "config.yaml").read_text(encoding="utf-8"))
        assert saved["seed"] == 3  # from -o
        assert saved["training"]["learning_rate"] == 0.02  # from the recipe
        assert saved["training"]["beta1"] == 0.9  # a default
        assert saved["decoding"]["strategy"] == "beam"


def test_the_saved_config_describes_the_whole_run(lstm):
    """Every setting is written down, so that the folder of a run is a recipe itself."""
    outcome = run_here("predict", "-c", lstm.folder / "config.yaml", FIRST, "--json")
    assert texts(outcome) == texts(run_here("predict", "-c", lstm.config, FIRST, "--json"))


def test_predict_answers_texts_in_json(model):
    outcome = run("predict", "-c", model.config, "--json", FIRST, "高来", "--n-best", 3)
    found = records(outcome)
    assert outcome.stderr == f"weights: {model.folder}/best\n"
    assert [record["first"] for record in found] == [FIRST, "高来"]
    for record in found:
        assert record.keys() == {"first", "predictions"}
        assert len(record["predictions"]) == 3
        scores = [candidate["score"] for candidate in record["predictions"]]
        assert all(isinstance(score, float) and score < 0 for score in scores)
        for candidate in record["predictions"]:
            assert candidate.keys() == {"text", "score", "form"}
            assert {name: type(value) for name, value in candidate["form"].items()} == FORM
        assert len({candidate["text"] for candidate in record["predictions"]}) == 3
    assert "\\u" not in outcome.stdout


def test_candidates_stand_best_first(model):
    """Under a length penalty of `average` the rank is the printed score, a mean over tokens."""
    options = ("-o", "decoding.length_penalty=average", "-o", "rules.tone_weight=0")
    arguments = ("-c", model.config, "--n-best", 4, "--json", *options)
    for record in records(run_here("predict", *arguments, FIRST, "来高风红")):
        scores = [candidate["score"] for candidate in record["predictions"]]
        assert scores == sorted(scores, reverse=True)


def test_predict_answers_readably(lstm):
    (answer,) = texts(run_here("predict", "-c", lstm.config, FIRST, "--json"))
    one = run_here("predict", "-c", lstm.config, FIRST)
    assert one.stdout == f"{FIRST}\t{answer[0]}\n"
    many = run_here("predict", "-c", lstm.config, FIRST, "--n-best", 2).stdout.splitlines()
    assert many[0] == FIRST and len(many) == 3
    assert re.fullmatch(rf" +-\d+\.\d{{4}}  {answer[0]}", many[1])


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
    smaller = ("-o", "decoding.batch_size=2", "--input", file)
    assert texts(run_here("predict", "-c", model.config, "--json", *smaller)) == [
        [p["text"] for p in json.loads(line)["predictions"]] for line in expected.splitlines()
    ]


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


def test_greedy_search_is_a_beam_of_one(model):
    arguments = ("-c", model.config, "--json", FIRST, "来高山")
    greedy = records(run_here("predict", *arguments, "-o", "decoding.strategy=greedy"))
    beam = records(run_here("predict", *arguments, "-o", "decoding.beam_size=1"))
    assert greedy == beam


def test_sampling_repeats_with_its_seed_and_varies_without(model):
    arguments = ("-c", model.config, "--json", FIRST, "--n-best", 5, "-o", "decoding.strategy=sample")
    one, again, other = (
        texts(run_here("predict", *arguments, "-o", f"seed={seed}", "-o", "decoding.temperature=2"))
        for seed in (1, 1, 2)
    )
    assert one == again != other
    assert len(one[0]) == 5


def test_sampling_from_the_best_token_alone_is_greedy(lstm):
    arguments = ("-c", lstm.config, "--json", FIRST)
    sample = run_here("predict", *arguments, "-o", "decoding.strategy=sample", "-o", "decoding.top_k=1")
    assert texts(sample) == texts(run_here("predict", *arguments, "-o", "decoding.strategy=greedy"))


def test_weights_under_older_names_answer_alike(lstm, tmp_path):
    bundle = load_bundle(lstm.folder / "best")
    renamed = {re.sub("^decoder.cell", "cell", name): values for name, values in bundle.weights.items()}
    assert renamed.keys() != bundle.weights.keys()
    save_bundle(dataclasses.replace(bundle, weights=renamed), tmp_path / "renamed")
    now = run_here("predict", "-c", lstm.config, FIRST, "--weights", lstm.folder / "best")
    older = run_here("predict", "-c", lstm.config, FIRST, "--weights", tmp_path / "renamed")
    assert (older.status, older.stdout) == (0, now.stdout)


def test_decoding_is_timed_against_paddles_own_beam_search(model):
    arguments = ("-c", model.config, "--decoding-only", "--against", "reference", "--repeats", 1, "--json")
    (record,) = records(run_here("benchmark", *arguments))
    assert record.keys() == {"decoding", "reference", "times_reference"}
    for section in record.values():
        assert all(value > 0 for value in section.values())


def test_the_reference_engine_finds_what_the_fast_one_finds(lstm):
    arguments = ("-c", lstm.config, "--input", "-", "--n-best", 4, "--json", "-o", "rules.enabled=false")
    arguments = (*arguments, "-o", "choice.distance=0")
    firsts = "".join(line.split("\t")[0] + "\n" for line in lstm.data.read_text().splitlines()).encode()
    fast = records(run_here("predict", *arguments, stdin=firsts))
    reference = records(run_here("predict", *arguments, "-o", "decoding.engine=reference", stdin=firsts))
    assert len(fast) == len(reference) == 30
    # Paddle's search leaves a text open at the limit of 12 tokens, where ours ends it.
    limited = {
        p["text"] for record in [*fast, *reference] for p in record["predictions"] if len(p["text"]) > 11
    }
    pairs = [
        (one, other)
        for one, other in zip(fast, reference, strict=True)
        if limited.isdisjoint(p["text"] for p in one["predictions"] + other["predictions"])
    ]
    assert len(pairs) >= 20
    for one, other in pairs:
        assert [p["text"] for p in one["predictions"]] == [p["text"] for p in other["predictions"]]
        scores, expected = ([p["score"] for p in record["predictions"]] for record in (one, other))
        assert scores == pytest.approx(expected, abs=2e-4)


def test_evaluate_prints_the_metrics_of_the_contract(model, tmp_path):
    written = tmp_path / "hypotheses.jsonl"
    arguments = ("-c", model.config, "--data", model.data, "--json", "--predictions", written)
    outcome = run("evaluate", *arguments)
    (metrics,) = records(outcome)
    assert outcome.stderr == f"weights: {model.folder}/best\n"
    assert {"n", "perplexity", "perplexity_hanzi", "bleu", "form"} <= metrics.keys()
    assert metrics["n"] == 30
    assert set(metrics["form"]) == {*FORM, "distinct_1", "distinct_2"}
    assert all(0 <= value <= 1 for value in metrics["form"].values())
    assert metrics["perplexity"] > 1 and 0 <= metrics["bleu"] < 100 + 1e-6  # sacrebleu rounds up at times

    lines = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
    pairs = [line.split("\t") for line in model.data.read_text(encoding="utf-8").splitlines()]
    assert [[line["first"], line["reference"]] for line in lines] == pairs
    equal = [line["predictions"][0]["form"]["length_equal"] for line in lines]
    assert sum(equal) / 30 == pytest.approx(metrics["form"]["length_equal"])
    assert [line["predictions"][0]["text"] for line in lines] == [
        candidates[0]
        for candidates in texts(run_here("predict", "-c", model.config, "--json", *(p[0] for p in pairs)))
    ]


def test_evaluate_agrees_with_the_dev_perplexity_of_training(model):
    best = re.search(r"best dev perplexity ([\d.]+)", model.outcome.stdout)[1]
    (metrics,) = records(run_here("evaluate", "-c", model.config, "--json"))  # data.dev of the config
    assert metrics["perplexity"] == pytest.approx(float(best), abs=6e-4)


def test_evaluate_shows_the_metrics_as_a_table(lstm):
    shown = run_here("evaluate", "-c", lstm.config)
    rows = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines())
    assert rows["n"] == "30"
    assert re.fullmatch(r"\d+\.\d{4}", rows["perplexity"])
    assert re.fullmatch(r"[01]\.\d{4}", rows["form.length_equal"])


def test_weights_are_those_of_the_run_or_else_shipped_or_else_named(lstm, tmp_path, monkeypatch):
    unrun = ("-c", lstm.config, "-o", f"output_dir={tmp_path / 'none'}", FIRST)
    monkeypatch.setattr("paddle_dialog.shipped.MODELS", tmp_path)
    line = run_here("predict", *unrun).error_line()
    assert f"{tmp_path}/none/best does not exist, and none ship for the task 'couplet'; train with" in line
    (tmp_path / "couplet").symlink_to(lstm.folder / "last")
    shipped = run_here("predict", *unrun)
    assert (shipped.status, shipped.stderr) == (0, f"weights: {tmp_path}/couplet\n")
    named = run_here("predict", *unrun, "--weights", lstm.folder / "last")
    assert named.stderr == f"weights: {lstm.folder}/last\n"
    by_name = run_here("predict", *unrun, "--weights", "couplet")
    assert (by_name.stdout, by_name.stderr) == (shipped.stdout, shipped.stderr)
    assert named.stdout == shipped.stdout
    own = run_here("predict", "-c", lstm.config, FIRST)
    assert own.stderr == f"weights: {lstm.folder}/best\n"


def test_a_bundle_answers_from_python(model):
    couplet = paddle_dialog.load(model.folder / "best")
    candidates = couplet.predict([FIRST, "高来"], n_best=3)
    found = records(run_here("predict", "-c", model.config, "--json", "--n-best", 3, FIRST, "高来"))
    assert [[p.text for p in line] for line in candidates] == [
        [p["text"] for p in record["predictions"]] for record in found
    ]
    assert candidates[0][0].score == pytest.approx(found[0]["predictions"][0]["score"], abs=1e-4)
    assert candidates[0][0].form.as_dict() == found[0]["predictions"][0]["form"]


def test_prediction_imports_nothing_that_only_training_needs(lstm):
    code = (
        "import sys, paddle_dialog\n"
        f"paddle_dialog.load({str(lstm.folder / 'best')!r}).predict([{FIRST!r}])\n"
        "print(sorted({'paddlenlp', 'visualdl', 'matplotlib', 'sacrebleu'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_a_reader_that_goes_away_is_no_error(lstm):
    process = start("predict", "-c", lstm.config, "--input", "-", stdin=subprocess.PIPE)
    process.stdout.close()
    _, err = process.communicate(f"{FIRST}\n".encode() * 3)
    assert process.returncode == 0
    assert b"Traceback" not in err and b"Exception" not in err


def test_a_fault_of_ours_is_told_as_one(lstm, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("broken for this test")

    monkeypatch.setattr(loading, "load_model", broken)
    outcome = run_here("predict", "-c", lstm.config, FIRST)
    assert outcome.status == 1
    assert "ZeroDivisionError" in outcome.stderr and "fault of paddle_dialog" in outcome.stderr
