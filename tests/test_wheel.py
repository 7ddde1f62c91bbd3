"""The package: its wheel, its pins and its extras."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from command import ROOT, Outcome
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from paddle_dialog.command_line import EXTRAS, how_to_install

PARTS = ("paddle_dialog", "tasks", "configs", "pretrained", "pyproject.toml", "LICENSE")


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and an empty folder to work in.

    Args:
        folder: of the environment.
        work: where its commands are started.
    """

    folder: Path
    work: Path

    def run(self, program: str, *arguments: object) -> Outcome:
        """Run a program of the environment."""
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        done = subprocess.run(
            [self.folder / "bin" / program, *map(str, arguments)],
            cwd=self.work,
            env={name: value for name, value in os.environ.items() if name not in hidden},
            capture_output=True,
            encoding="utf-8",
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    @property
    def shipped(self) -> Path:
        """Where the recipes and models lie in it."""
        (found,) = self.folder.glob("lib/python*/site-packages/paddle_dialog/shipped")
        return found


def install(base: Path) -> Installed:
    """Build the wheel and install it without extras; skip the test where there is no package index."""
    environment = Installed(base / "environment", base / "work")
    environment.work.mkdir()
    (environment.work / "tasks.py").write_text("raise ImportError('of the user')", encoding="utf-8")
    venv.create(environment.folder)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        environment.folder / "bin" / "python",
        "install",
        "--no-compile",
    ]
    # What the wheel may need comes first and pinned; then the wheel without an index, so that it can need no more.
    lines = (ROOT / "requirements-light.txt").read_text(encoding="utf-8").splitlines()
    pins = base / "pins.txt"
    pins.write_text("\n".join(line for line in lines if not line.startswith("-")), encoding="utf-8")
    needs = subprocess.run([*pip, "--retries", "1", "-r", pins], capture_output=True, encoding="utf-8")
    if needs.returncode and "Retrying (" in needs.stderr + needs.stdout:
        pytest.skip(f"the package index cannot be reached: {needs.stderr.splitlines()[-1]}")
    assert needs.returncode == 0, needs.stderr
    done = subprocess.run([*pip, "--no-index", build_wheel(base)], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return environment


def build_wheel(base: Path) -> Path:
    """Build the wheel from a copy, since building leaves files behind."""
    source = base / "source"
    source.mkdir()
    for part in PARTS:
        path = ROOT / part
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, source / part, symlinks=True, ignore=ignored)
        else:
            shutil.copy(path, source)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", base, source]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    (wheel,) = base.glob("*.whl")
    return wheel


def test_the_wheel(tmp_path: Path) -> None:
    """One test, as several would each have to wait for their own environment."""
    installed = install(tmp_path)
    both_tasks_answer_from_any_folder(installed)
    a_model_is_loaded_by_its_name_from_python(installed)
    what_is_not_installed_is_told(installed)
    a_wheel_without_weights_or_recipes_says_so(installed)  # takes them away


def both_tasks_answer_from_any_folder(installed: Installed) -> None:
    couplet = installed.run("paddle-dialog", "predict", "-c", "couplet", "晚风摇树树还挺", "𪚥龘", "--json")
    assert couplet.status == 0, couplet.stderr
    assert couplet.stderr == f"weights: {installed.shipped.resolve()}/pretrained/couplet\n"
    (answer, rare) = (json.loads(line)["predictions"][0] for line in couplet.stdout.splitlines())
    assert len(answer["text"]) == 7 and answer["form"]["repeats_mirrored"] and answer["form"]["final_level"]
    assert len(rare["text"]) == 2
    reply = installed.run(
        "paddle-dialog", "predict", "-c", "empathetic", "I lost my dog yesterday.", "--json"
    )
    assert reply.status == 0, reply.stderr
    record = json.loads(reply.stdout)
    assert record["emotion"] in ("sad", "devastated", "lonely") and record["predictions"][0]["text"]
    whole = installed.run("paddle-dialog", "compose", "-c", "couplet", "--theme", "春节", "--count", "1")
    assert whole.status == 0, whole.stderr
    assert [len(part) for part in whole.stdout.split()] == [7, 7, 4]
    assert [file.name for file in installed.work.iterdir()] == ["tasks.py"]
    packages = installed.shipped.parents[1]
    (ours,) = packages.glob("paddle_dialog-*.dist-info")
    assert (ours / "top_level.txt").read_text(encoding="utf-8") == "paddle_dialog\n"
    for page in (
        "paddle_dialog/serving/page/index.html",
        "paddle_dialog/tasks/couplet/page/tab.html",
        "paddle_dialog/tasks/empathetic/page/tab.css",
    ):
        assert (packages / page).is_file()


def a_model_is_loaded_by_its_name_from_python(installed: Installed) -> None:
    code = "import paddle_dialog; print(paddle_dialog.load('couplet').predict(['春风送暖百花开'])[0][0].text)"
    outcome = installed.run("python", "-c", code)
    assert outcome.status == 0, outcome.stderr
    assert len(outcome.stdout.strip()) == 7


def what_is_not_installed_is_told(installed: Installed) -> None:
    for command, config, extra in (("train", "couplet_sample", "train"), ("serve", "serve", "serve")):
        line = installed.run("paddle-dialog", command, "-c", config).error_line()
        assert f"pip install 'paddle_dialog[{extra}]'" in line
    assert (
        "did you mean couplet?"
        in installed.run("paddle-dialog", "predict", "-c", "cuplet", "春").error_line()
    )


def a_wheel_without_weights_or_recipes_says_so(installed: Installed) -> None:
    predict = ("paddle-dialog", "predict", "-c", "couplet", "春")
    shutil.rmtree(installed.shipped / "pretrained")
    line = installed.run(*predict).error_line()
    assert "no weights: runs/couplet/best does not exist, and none ship with the recipe couplet" in line
    shutil.rmtree(installed.shipped / "configs")
    line = installed.run(*predict).error_line()
    assert line == "error: couplet: no such file, and no recipe of this name ships; there are none at all"


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = {  # what each pinned file holds beside those it contains
    "requirements-light.txt": PROJECT["dependencies"],
    "requirements.txt": PROJECT["optional-dependencies"]["train"] + PROJECT["optional-dependencies"]["serve"],
    "requirements-dev.txt": PROJECT["optional-dependencies"]["dev"],
    "requirements-pretrained.txt": [
        *PROJECT["dependencies"],
        *PROJECT["optional-dependencies"]["pretrained"],
        *PROJECT["optional-dependencies"]["serve"],
        *(line for line in PROJECT["optional-dependencies"]["dev"] if line.startswith("pytest")),
    ],
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
    for folder in ("paddle_dialog", "tasks"):
        for path in (ROOT / folder).rglob("*.py"):
            found = imported(ast.parse(path.read_text(encoding="utf-8"))) - set(sys.stdlib_module_names)
            unknown = found - modules - {"numpy", "yaml", "safetensors", "sentencepiece", "paddle_dialog"}
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
        for module in modules if extra != "pretrained" else ():  # it has an environment of its own
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
    assert done.stderr.startswith(
        "setup_env: unknown argument '--ligth'; there are --light, --dev and --pretrained"
    )
