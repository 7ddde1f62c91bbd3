"""`paddle-dialog COMMAND`: the same commands as the scripts in tools/, under one name."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import pytest
from command import ROOT, Outcome, run_here

from paddle_dialog_commands import console

NAMES = {path.stem for path in (ROOT / "paddle_dialog_commands").glob("*.py")} - {"__init__", "console"}


def console_command(*arguments: object) -> Outcome:
    """Run `paddle-dialog` in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch.object(sys, "argv", ["paddle-dialog", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            status = console.main()
        except SystemExit as exit_:  # argparse leaves so
            status = exit_.code
    assert isinstance(status, int)
    return Outcome(status, out.buffer.getvalue().decode("utf-8"), err.buffer.getvalue().decode("utf-8"))


def test_every_command_has_a_script_and_a_line_in_the_help() -> None:
    outcome = console_command("--help")
    assert (outcome.status, outcome.stderr) == (0, "")
    assert set(console.command_modules()) == {*NAMES, "chat", "compose"}
    for name in console.command_modules():
        assert (ROOT / "tools" / f"{name}.py").is_file()
        assert f"\n  {name} " in outcome.stdout
    assert console_command() == outcome


def test_a_command_speaks_of_itself_as_it_was_called() -> None:
    outcome = console_command("predict", "--help")
    assert outcome.stdout.startswith("usage: paddle-dialog predict ")
    assert "example: paddle-dialog predict -c couplet_lstm 晚风" in outcome.stdout
    assert "see paddle-dialog predict --help" in console_command("predict").error_line()


@pytest.mark.parametrize("arguments", [["summary", "-c", "configs/couplet.yaml", "--json"]])
def test_a_subcommand_is_the_script(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert console_command(*arguments) == run_here(*arguments)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pedict", "'pedict' is no command of paddle-dialog; did you mean predict?"),
        ("xyz", "'xyz' is no command of paddle-dialog; there are predict, serve, "),
        ("-c", "'-c' is no command"),
    ],
)
def test_an_unknown_command(name: str, said: str) -> None:
    assert said in console_command(name, "configs/couplet.yaml").error_line()
