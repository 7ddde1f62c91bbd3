"""The command that chats: lines that are piped, a terminal, and the history it keeps."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command import run_here, start
from empathetic_toys import save_model

from tasks.empathetic.data.sources import read_dialogues


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(
        tmp_path_factory.mktemp("chat"), data={"max_length": 24}, decoding={"beam_size": 2, "max_length": 5}
    )


def test_piped_lines_are_answered_without_decoration(recipe: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    lines = [
        "\ufeffmy dog died .",
        "",
        "/emotion prowd",
        "/emotion proud",
        "/n-best 2",
        "i won\r",
        "/help",
        f"/save {file}",
        "/quit",
        "never said",
    ]
    stdin = "\n".join(lines).encode() + b"\n\xff\n"
    outcome = run_here("chat", "-c", recipe, stdin=stdin)
    assert outcome.status == 0, outcome.stderr
    shown = outcome.stdout.splitlines()
    assert len(shown) == 2 + 3  # emotion and reply; emotion and two replies
    assert re.fullmatch(r"\[\w+ \d+%, \w+ \d+%, \w+ \d+%\]", shown[0])
    assert shown[2].startswith("[proud, set by you; predicted: ") and shown[4].startswith("2. ")
    (saved,) = read_dialogues(str(file))
    assert saved.context[0] == "my dog died ." and saved.context[2] == "i won"
    for said in ("error: the turn is empty", "did you mean 'proud'", "4 turns added", "/undo"):
        assert said in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_the_end_of_input_ends_the_chat_and_keeps_the_history(recipe: Path, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    outcome = run_here("chat", "-c", recipe, "--history", file, stdin=b"\xff\xfe\nmy dog died .")
    assert outcome.status == 0 and "error: this line is not UTF-8" in outcome.stderr
    assert json.loads(file.read_text(encoding="utf-8"))["context"] == ["my dog died ."]
    assert run_here("chat", "-c", recipe, stdin=b"").stdout == ""


def test_a_history_that_cannot_be_written_and_a_model_without_dialogues(
    recipe: Path, tmp_path: Path, trained: Any
) -> None:
    outcome = run_here("chat", "-c", recipe, "--history", tmp_path)
    assert f"{tmp_path}: the conversation cannot be saved" in outcome.error_line()
    outcome = run_here("chat", "-c", trained["lstm"].config)
    assert "a chat needs a model of dialogues" in outcome.error_line()


def test_a_terminal_is_prompted_and_ctrl_c_ends_with_130(recipe: Path, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    leader, follower = pty.openpty()
    options = {"stdin": follower, "stdout": follower, "environment": {"TERM": "dumb"}}
    process = start("chat", "-c", recipe, "--history", file, start_new_session=True, **options)
    os.close(follower)
    assert wait_for(leader, r"> ").endswith("> ")
    os.write(leader, "my dog died 🏝\n".encode())
    assert re.search(r"\[\w+ \d+%, \w+ \d+%, \w+ \d+%\]\r\n.+\r\n> $", wait_for(leader, r"%\]\r\n.+\r\n> "))
    while process.poll() is None:  # one that arrives between prompt and wait is only seen at the next
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
    _, stderr = process.communicate(timeout=300)
    os.close(leader)
    assert process.returncode == 130, stderr
    assert b"interrupted" in stderr and b"Traceback" not in stderr
    assert [d.context for d in read_dialogues(str(file))] == [["my dog died 🏝"]]


def wait_for(terminal: int, pattern: str) -> str:
    """Return what a terminal shows up to this pattern."""
    shown = ""
    while not re.search(pattern, shown):
        shown += os.read(terminal, 4096).decode("utf-8", "replace")
    return shown
