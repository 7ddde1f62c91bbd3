"""The tools as a user starts them: in a process of their own, or, where that would cost seconds, in this one."""

from __future__ import annotations

import io
import json
import os
import runpy
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    stdout: str
    stderr: str

    def error_line(self):
        """Return the one line that tells of bad input, checked to be all that stderr says of it."""
        assert self.status == 2, (self.status, self.stderr)
        assert "Traceback" not in self.stderr
        lines = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1 and self.stderr.endswith(lines[0] + "\n"), self.stderr
        return lines[0]


def start(tool, *arguments, **options):
    """Start `python tools/<tool>.py` from the root of the project."""
    command = [sys.executable, f"tools/{tool}.py", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("environment", {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)


def run(tool, *arguments, stdin=b"", **options):
    """Run a tool in a process of its own, with `stdin` piped into it."""
    process = start(tool, *arguments, stdin=subprocess.PIPE, **options)
    out, err = process.communicate(stdin)
    return Outcome(process.returncode, out.decode("utf-8"), err.decode("utf-8"))


def run_here(tool, *arguments, stdin=b""):
    """Run a tool's file as the main program inside this process, where paddle is imported already."""
    path = str(ROOT / "tools" / f"{tool}.py")
    return called(lambda: runpy.run_path(path, run_name="__main__"), path, *arguments, stdin=stdin)


def called(program, *words, stdin=b""):
    """Return what a program in this process leaves behind, called with the words of a command line."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    source = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with (
        mock.patch.object(sys, "argv", [*map(str, words)]),
        mock.patch.object(sys, "path", [str(ROOT / "tools"), *sys.path]),
        mock.patch.object(sys, "stdin", source),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            status = program()
        except SystemExit as exit_:
            status = exit_.code
    assert isinstance(status, int)
    return Outcome(status, out.buffer.getvalue().decode("utf-8"), err.buffer.getvalue().decode("utf-8"))


def written(folder, content, name="data.txt"):
    """Return a file of this content."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def progress(run_folder):
    """Return the counters of the last checkpoint of a run."""
    return json.loads((run_folder / "last" / "progress.json").read_text())


def children(pid):
    """Return processes that a process has started."""
    return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def records(outcome):
    """Return the JSON lines of a command that did its work."""
    assert outcome.status == 0, outcome.stderr
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def texts(outcome):
    """Return the candidates in each of its JSON lines."""
    return [[p["text"] for p in record["predictions"]] for record in records(outcome)]
