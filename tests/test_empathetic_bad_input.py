"""Bad input to the empathetic commands: answered, or one plain line that says what is wrong and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run, run_here
from empathetic_toys import save_model

GOOD = '{"context": ["my dog"], "target": "oh no", "emotion": "sad"}\n'


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("toy"), decoding={"beam_size": 2, "max_length": 3})


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("x" * 10_000, ["x" * 10_000]),
        ("dog " * 2500, [("dog " * 2500).strip()]),
        ("😭 🏝", ["😭 🏝"]),
        ("qwrtz zxcvb", ["qwrtz zxcvb"]),
        ("\x1b[31mred\x00", ["[31mred"]),
        (' {"emotion": "sad", "context": ["my  dog"]}', ["my dog"]),
        ('{"a": 1}', ['{"a": 1}']),
    ],
    ids=["one long word", "many words", "emoji", "unknown words", "control", "other keys", "no conversation"],
)
def test_odd_turns_are_answered(recipe: Path, text: str, context: list[str]) -> None:
    outcome = run_here("predict", "-c", recipe, text, "--json")
    assert outcome.status == 0, outcome.stderr
    record = json.loads(outcome.stdout)
    assert record["context"] == context and record["predictions"][0]["text"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the turn is empty"),
        (" \x00\t", "the turn is empty"),
        ('{"context": ["a", "b"]}', "the context has 2 turns, so speaker and listener do not alternate"),
        ('{"context": ["a", " ", "b"]}', "turn 2 is empty"),
        ('{"context": []}', "the conversation has no turn"),
        ('{"context": "a"}', "context must be a list of turns"),
        ('{"context": ["a"', "is broken JSON at column 17"),
        ('{"context": ' + "1" * 5000 + "}", "is JSON with a number of thousands of digits"),
        ('{"context": ' + "[" * 100_000, "is JSON nested too deeply"),
        ('{"context": ["a \\ud83d"]}', "the turn has half of a surrogate pair"),
    ],
)
def test_what_cannot_be_answered_is_told_in_one_line(recipe: Path, text: str, said: str) -> None:
    outcome = run_here("predict", "-c", recipe, text)
    assert said in outcome.error_line() and len(outcome.error_line()) < 300
    assert outcome.stdout == ""


def test_a_faulty_line_of_an_input_is_numbered_by_the_real_command(recipe: Path, tmp_path: Path) -> None:
    file = tmp_path / "turns.txt"
    file.write_text('my dog died .\n\n{"context": ["a", "b"]}\nnever\n', encoding="utf-8")
    outcome = run("predict", "-c", recipe, "--input", file, "--json")
    assert f"{file}:3: the context has 2 turns" in outcome.error_line()
    assert [json.loads(line)["context"] for line in outcome.stdout.splitlines()] == [["my dog died ."]]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"context": ["a"', "broken JSON at column 17"),
        ('{"context": ["a"], "target": "b", "emotion": "prowd"}', "'prowd'; did you mean 'proud'?"),
        ('{"context": ["a", "b"], "target": "c"}', "the context has 2 turns, so speaker and listener do not"),
        ('{"context": [" "], "target": "c"}', "turn 1 of the context is empty"),
        ('{"context": ["a"]}', "key 'target' is missing"),
        ('{"context": [1], "target": "c"}', "turn 1 of the context is 1; it must be a string"),
        ('{"context": ["a"], "target": "\\ud83d"}', "'target' has half of a surrogate pair"),
        ('{"context": ' + "1" * 5000 + "}", "JSON with a number of thousands of digits"),
        ("[" * 100_000, "JSON nested too deeply"),
        ("caf\u00e9".encode("latin-1"), "not UTF-8"),
    ],
)
def test_a_faulty_line_of_the_data_is_numbered(recipe: Path, tmp_path: Path, line: Any, said: str) -> None:
    file = tmp_path / "data.jsonl"
    file.write_bytes(GOOD.encode() + (line if isinstance(line, bytes) else line.encode()) + b"\n")
    outcome = run_here("evaluate", "-c", recipe, "--data", file)
    assert f"{file}:2: " in outcome.error_line() and said in outcome.error_line()
    assert outcome.stdout == ""


def test_odd_data_are_evaluated(recipe: Path, tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    long = {"context": ["x" * 10_000], "target": "dog " * 2500}
    file.write_text(
        "\ufeff" + GOOD + json.dumps(long) + '\n\n{"context": ["😭"], "target": "😭"}\r\n', encoding="utf-8"
    )
    outcome = run_here("evaluate", "-c", recipe, "--data", file, "--json")
    assert outcome.status == 0, outcome.stderr
    assert json.loads(outcome.stdout)["n"] == 3


def test_predictions_do_not_overwrite_the_data(recipe: Path, tmp_path: Path) -> None:
    file, link = tmp_path / "data.jsonl", tmp_path / "link.jsonl"
    file.write_text(GOOD, encoding="utf-8")
    link.symlink_to(file)
    outcome = run_here("evaluate", "-c", recipe, "--data", file, "--predictions", link)
    assert "--predictions would overwrite the data" in outcome.error_line()
    assert file.read_text(encoding="utf-8") == GOOD
