"""Regenerate the lock files: one resolution per supported Python, merged into one file with hashes.

A single universal resolution does not work: the versions it finds for all Pythons at once fail to import.

Example: python tools/lock.py          (needs `uv` on the PATH)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# Of each lock: the Pythons that it holds for, and its files, each of which contains those before it.
LOCKS = {
    "requirements.lock": (
        ("3.10", "3.11", "3.12", "3.13", "3.14"),
        ("requirements-light.txt", "requirements-serve.txt", "requirements.txt", "requirements-dev.txt"),
    ),
    "requirements-pretrained.lock": (("3.10", "3.11", "3.12"), ("requirements-pretrained.txt",)),
}
# Compiled packages whose newest release may be source only for one of the Pythons; a user has no compiler.
WHEELS_ONLY = (
    *("llvmlite", "numba", "numpy", "onnx", "onnxoptimizer", "paddle2onnx", "pyarrow", "scipy", "soxr"),
    *("sentencepiece", "tool-helpers"),
)
HEADER = """\
# The whole dependency tree of {names}, for `pip install --require-hashes -r`.
# Made by `python tools/lock.py` (needs uv); do not edit by hand. A section for each file, on top of those before it.
# A line without a marker holds for Python {pythons} alike.
"""


class Pin(NamedTuple):
    """A version of a package, with the hashes of the files of its release."""

    version: str
    hashes: tuple[str, ...]


def direct_requirements(names: Sequence[str]) -> str:
    """Return the pinned lines of requirements files, without pip's own options."""
    lines = [line for name in names for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    return "\n".join(line for line in lines if not line.startswith(("-", "#"))) + "\n"


def resolve(python: str, requirements: str, known: Mapping[str, Pin]) -> dict[str, Pin]:
    """Return {package: pin} for one Python version, as uv resolves requirements; of known ones the known versions."""
    command = ["uv", "pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate"]
    command += ["--generate-hashes", "--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    for package in WHEELS_ONLY:
        command += ["--only-binary", package]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(f"{package}=={pin.version}\n" for package, pin in known.items()))
        file.flush()
        command += ["--constraints", file.name, "-"]
        done = subprocess.run(command, input=requirements, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lock: uv found no solution for Python {python}:\n{done.stderr}")
    lines = [line.split() for line in done.stdout.replace("\\\n", " ").splitlines()]
    pins = [(line[0].split("=="), line[1:]) for line in lines]
    return {package: Pin(version, tuple(sorted(hashes))) for (package, version), hashes in pins}


def merge(by_python: dict[str, dict[str, Pin]]) -> list[str]:
    """Return the lines of the lock, with a marker only where the Pythons differ."""
    versions: dict[str, dict[Pin, list[str]]] = defaultdict(lambda: defaultdict(list))
    for python, pins in by_python.items():
        for package, pin in pins.items():
            versions[package][pin].append(python)
    lines = []
    for package in sorted(versions):
        for pin, pythons in versions[package].items():
            marker = " or ".join(f'python_version == "{python}"' for python in pythons)
            everywhere = len(pythons) == len(by_python)
            pinned = f"{package}=={pin.version}" + ("" if everywhere else f" ; {marker}")
            lines.append(" \\\n    ".join([pinned, *pin.hashes]))
    return lines


def main() -> None:
    """Write the lock files."""
    for lock, (pythons, names) in LOCKS.items():
        whole = {python: resolve(python, direct_requirements(names), {}) for python in pythons}
        lines = [HEADER.format(names=" and ".join(names[-2:]), pythons=", ".join(pythons))]
        before = dict.fromkeys(pythons, frozenset[str]())
        for number, name in enumerate(names, start=1):
            wanted = direct_requirements(names[:number])
            found = {python: resolve(python, wanted, whole[python]) for python in pythons}
            new = {p: {k: pin for k, pin in pins.items() if k not in before[p]} for p, pins in found.items()}
            lines += [f"# {name}", *merge(new), ""]
            before = {python: frozenset(pins) for python, pins in found.items()}
        (ROOT / lock).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
