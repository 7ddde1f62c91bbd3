"""The commands as a user types them: what goes where, in which form, with which status."""

import json
import re

import pytest
import yaml
from command import ROOT, called, records, run, run_here, texts
from couplet_toys import FORM
from empathetic_toys import save_model

from paddle_dialog import processes, recipes
from paddle_dialog.commands import console
from paddle_dialog.config import schema

FIRST = "天山春红风"


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
    assert names == {"best", "last", "vdl", "train.log", "config.yaml", ".lock"}
    assert list((model.folder / "vdl").iterdir())
    for place in (model.folder, model.folder / "best", model.folder / "last"):
        saved = yaml.safe_load((place / "config.yaml").read_text(encoding="utf-8"))
        assert saved["seed"] == 3  # from -o
        assert saved["training"]["learning_rate"] == 0.02  # from the recipe
        assert saved["training"]["beta2"] == 0.999  # a default
        assert saved["decoding"]["strategy"] == "beam"


def test_the_saved_config_describes_the_whole_run(lstm):
    """Every setting is written down, so that the folder of a run is a recipe itself."""
    outcome = run_here("predict", "-c", lstm.folder / "config.yaml", FIRST, "--json")
    assert texts(outcome) == texts(run_here("predict", "-c", lstm.config, FIRST, "--json"))


def test_answers_are_timed(lstm):
    arguments = ("-c", lstm.config, "--weights", lstm.folder / "best", "--repeats", 1, "--json")
    (record,) = records(run_here("benchmark", *arguments))
    assert record["decoding"].keys() == {"milliseconds_one", "inputs_per_second"}
    assert all(value > 0 for value in record["decoding"].values())


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


def test_evaluate_answers_on_all_cores_what_one_process_answers(lstm, tmp_path):
    sizes = ("-o", "data.batch_size=2")
    words = ("-c", lstm.config, "--data", lstm.data, *sizes, "--json", "--predictions")
    every = records(run("evaluate", *words, tmp_path / "all"))
    one = records(run_here("evaluate", *words, tmp_path / "one"))  # Paddle is imported here
    assert (tmp_path / "all").read_bytes() == (tmp_path / "one").read_bytes()
    assert every == one
    (likely,) = records(run("evaluate", *words[:-1], "--no-answers"))
    assert {"perplexity", "perplexity_hanzi", "unknown_rate"} <= likely.keys() and "bleu" not in likely
    assert likely == {name: one[0][name] for name in likely}


def test_evaluate_shows_a_table_and_before_how_many_are_answered_and_the_time_left(lstm, monkeypatch):
    monkeypatch.setattr(processes, "NOTE_SECONDS", 0.0)
    monkeypatch.setattr(schema, "INPUTS_TOGETHER", 16)
    shown = run_here("evaluate", "-c", lstm.config)
    assert re.search(r"^16 of 30 done, \d+\.\d minutes left$", shown.stderr, re.MULTILINE)
    rows = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines())
    assert rows["n"] == "30"
    assert re.fullmatch(r"\d+\.\d{4}", rows["perplexity"])
    assert re.fullmatch(r"[01]\.\d{4}", rows["form.length_equal"])


def test_evaluate_agrees_with_the_dev_perplexity_of_training(model):
    best = re.search(r"best dev perplexity ([\d.]+)", model.outcome.stdout)[1]
    (metrics,) = records(run_here("evaluate", "-c", model.config, "--json"))  # data.dev of the config
    assert metrics["perplexity"] == pytest.approx(float(best), abs=6e-4)


def test_a_fault_of_ours_is_told_as_one(lstm, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("broken for this test")

    monkeypatch.setattr(recipes, "load_answering", broken)
    outcome = run_here("predict", "-c", lstm.config, FIRST)
    assert outcome.status == 1
    assert "ZeroDivisionError" in outcome.stderr and "fault of paddle_dialog" in outcome.stderr


NAMES = {path.stem for path in (ROOT / "paddle_dialog" / "commands").glob("*.py")} - {"__init__", "console"}


def console_command(*arguments):
    """Run `paddle-dialog` in this process."""
    return called(console.main, "paddle-dialog", *arguments)


def test_every_command_has_a_script_and_a_line_in_the_help():
    outcome = console_command("--help")
    assert (outcome.status, outcome.stderr) == (0, "")
    assert set(console.command_modules()) == {*NAMES, "chat", "compose"}
    for name in console.command_modules():
        assert (ROOT / "tools" / f"{name}.py").is_file()
        assert f"\n  {name} " in outcome.stdout
    assert console_command() == outcome


def test_a_command_speaks_of_itself_as_it_was_called():
    outcome = console_command("predict", "--help")
    assert outcome.stdout.startswith("usage: paddle-dialog predict ")
    assert "example: paddle-dialog predict -c couplet_lstm 晚风" in outcome.stdout
    assert "see paddle-dialog predict --help" in console_command("predict", "--n-best", "x").error_line()


def test_a_subcommand_is_the_script(monkeypatch):
    monkeypatch.chdir(ROOT)
    arguments = ("summary", "-c", "configs/couplet.yaml", "--json")
    assert console_command(*arguments) == run_here(*arguments)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pedict", "'pedict' is no command of paddle-dialog; did you mean predict?"),
        ("xyz", "'xyz' is no command of paddle-dialog; there are predict, serve, "),
        ("-c", "'-c' is no command"),
    ],
)
def test_an_unknown_command(name, said):
    assert said in console_command(name, "configs/couplet.yaml").error_line()


def budget(trained, folder, *words, five="limit: 1000"):
    """Run the budget of a tiny couplet model and a tiny dialogue model; `five` is of the five candidates."""
    recipe, reply = trained.config, save_model(folder / "empathetic")
    path = folder / "budget.yaml"
    path.write_text(
        f"""
rounds: 3
answers:
  plain: {{config: {recipe}, override: [decoding.beam_size=1], texts: [春红, 天山春]}}
  five candidates:
    {{config: {recipe}, n_best: 5, texts: [春红, 天山春], baseline: plain, {five}}}
  reply: {{config: {reply}, texts: [I lost it.], baseline: plain, limit: 1000}}
""",
        "utf-8",
    )
    return run_here("benchmark", "--budget", "-c", path, *words)


def test_answers_within_the_budget_are_told_beside_their_limits(trained, tmp_path):
    outcome = budget(trained["transformer"], tmp_path)
    assert outcome.status == 0, outcome.stderr
    plain, five, reply = outcome.stdout.splitlines()
    assert plain.split()[1:] == ["ms", "plain"]
    assert five.split()[3:] == ["of", "1000", "five", "candidates"] and float(five.split()[2]) > 1
    assert reply.split()[3:] == ["of", "1000", "reply"]


def test_a_limit_that_is_exceeded_gives_exit_status_1(trained, tmp_path):
    outcome = budget(trained["transformer"], tmp_path, five="limit: 0.1")
    assert outcome.status == 1
    assert [line.endswith("EXCEEDED  five candidates") for line in outcome.stdout.splitlines()] == [0, 1, 0]
