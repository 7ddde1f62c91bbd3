"""The extras of the package against the pinned requirement files and the modules that the code imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest
from command import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from paddle_dialog.command_line import EXTRAS, OWN_PACKAGES, how_to_install

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = {  # what each pinned file holds beside those it contains
    "requirements-light.txt": PROJECT["dependencies"],
    "requirements.txt": PROJECT["optional-dependencies"]["train"] + PROJECT["optional-dependencies"]["serve"],
    "requirements-dev.txt": PROJECT["optional-dependencies"]["dev"],
}


def requirements(lines: list[str]) -> list[Requirement]:
    """Return those that hold for this Python, our own package aside."""
    found = [Requirement(line.partition("#")[0]) for line in lines]
    return [
        r
        for r in found
        if r.name != PROJECT["name"] and (r.marker is None or r.marker.evaluate({"extra": ""}))
    ]


@pytest.mark.parametrize("name", FILES)
def test_every_pin_is_one_that_the_package_allows_and_none_is_missing(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pins = {
        canonicalize_name(pin.name): next(iter(pin.specifier)).version
        for pin in requirements([line for line in lines if re.match(r"\w", line)])
    }
    asked = {canonicalize_name(asked.name): asked.specifier for asked in requirements(FILES[name])}
    assert pins.keys() == asked.keys()
    for package, version in pins.items():
        assert version in asked[package], (package, version, str(asked[package]))


def test_every_package_that_is_imported_belongs_to_the_core_or_to_an_extra() -> None:
    modules = {module for extra in EXTRAS.values() for module in extra}
    for folder in OWN_PACKAGES:
        for path in (ROOT / folder).rglob("*.py"):
            found = imported(ast.parse(path.read_text(encoding="utf-8"))) - set(sys.stdlib_module_names)
            unknown = found - modules - {"numpy", "yaml", "safetensors", "sentencepiece", *OWN_PACKAGES}
            assert not unknown, (path, unknown)


def imported(tree: ast.AST) -> set[str]:
    """Return top-level names of all modules that a file imports."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_the_extra_that_a_message_names_brings_the_package() -> None:
    owners = packages_distributions()
    for extra, modules in EXTRAS.items():
        brought = {canonicalize_name(r.name) for r in requirements(PROJECT["optional-dependencies"][extra])}
        for module in modules:
            # setuptools brings further modules of other names; PaddleNLP's helper is named after none of its own
            assert {canonicalize_name(name) for name in owners[module]} & brought, module
            assert f"paddle_dialog[{extra}]" in how_to_install(f"{module}.part")


def test_what_belongs_to_no_extra_is_told_too() -> None:
    assert how_to_install("yaml") == (
        "yaml is not installed, though others need it; install paddle_dialog with its requirements again"
    )


def test_setting_up_refuses_an_unknown_word_in_a_line() -> None:
    done = subprocess.run(
        ["bash", ROOT / "tools" / "setup_env.sh", "--ligth"], capture_output=True, encoding="utf-8"
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("setup_env: unknown argument '--ligth'; there are --light and --dev")
