"""Programs that are started as modules: their help, and what they say to bad input."""

import subprocess
import sys

import pytest
from command import ROOT

PROGRAMS = [
    "paddle_dialog.tone_table.verse_tones",
    "tasks.poem.kneser_ney",
    "tasks.poem.rhyme_table",
    "tasks.empathetic.measuring.kneser_ney",
]


def run(module, *arguments):
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")


@pytest.mark.parametrize("module", PROGRAMS)
def test_help_is_help_and_a_missing_file_one_plain_line(module):
    helped = run(module, "--help")
    assert helped.returncode == 0 and helped.stdout.startswith("usage:") and not helped.stderr
    missing = run(module, "/nonexistent/file", *["/nonexistent/file"] * module.endswith("kneser_ney"))
    assert missing.returncode == 2 and missing.stderr.count("\n") == 1
    assert missing.stderr.startswith("error: /nonexistent/file: no such file")
    nothing = run(module)
    assert nothing.returncode == 2 and "the following arguments are required" in nothing.stderr
