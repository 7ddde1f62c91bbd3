"""Regenerate the lock files: one resolution per supported Python, merged into one constraints file.

A single universal resolution does not work: the versions it finds for all Pythons at once fail to import.

Example: python tools/lock.py          (needs `uv` on the PATH)
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = {
    "requirements.lock": ("3.10", "3.11", "3.12", "3.13", "3.14"),
    "requirements-pretrained.lock": ("3.10", "3.11", "3.12"),
}
REQUIREMENTS = {
    "requirements.lock": ("requirements-light.txt", "requirements.txt", "requirements-dev.txt"),
    "requirements-pretrained.lock": ("requirements-pretrained.txt",),
}
# Compiled packages whose newest release may be source only for one of the Pythons; a user has no compiler.
WHEELS_ONLY = (
    "llvmlite",
    "numba",
    "numpy",
    "onnx",
    "onnxoptimizer",
    "paddle2onnx",
    "pyarrow",
    "scipy",
    "soxr",
    "sentencepiece",
    "tool-helpers",
)
HEADER = """\
# The whole dependency tree of {names}, a constraints file for pip.
# Made by `python tools/lock.py` (needs uv); do not edit by hand.
# A line without a marker holds for Python {pythons} alike. No hashes: pip takes none beside `-e .`.
"""


def direct_requirements(names: Sequence[str]) -> str:
    """Return the pinned lines of requirements files, without pip's own options."""
    lines = [line for name in names for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    return "\n".join(line for line in lines if not line.startswith(("-", "#"))) + "\n"


def resolve(python: str, requirements: str) -> dict[str, str]:
    """Return {package: version} for one Python version, as uv resolves requirements."""
    command = ["uv", "pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate"]
    command += ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    for package in WHEELS_ONLY:
        command += ["--only-binary", package]
    done = subprocess.run([*command, "-"], input=requirements, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lock: uv found no solution for Python {python}:\n{done.stderr}")
    return dict(line.split("==", 1) for line in done.stdout.splitlines() if "==" in line)


def merge(by_python: dict[str, dict[str, str]]) -> list[str]:
    """Return the constraint lines, with a marker only where the Pythons differ."""
    versions: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for python, pins in by_python.items():
        for package, version in pins.items():
            versions[package][version].append(python)
    lines = []
    for package in sorted(versions):
        for version, pythons in versions[package].items():
            marker = " or ".join(f'python_version == "{python}"' for python in pythons)
            everywhere = len(pythons) == len(by_python)
            lines.append(f"{package}=={version}" + ("" if everywhere else f" ; {marker}"))
    return lines


def main() -> None:
    """Write the lock files."""
    for lock, names in REQUIREMENTS.items():
        pythons = PYTHONS[lock]
        lines = merge({python: resolve(python, direct_requirements(names)) for python in pythons})
        header = HEADER.format(names=" and ".join(names[-2:]), pythons=", ".join(pythons))
        (ROOT / lock).write_text(header + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
