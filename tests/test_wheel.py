"""The package: its wheel, its pins and its extras."""

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

from paddle_dialog.command_line import PACKAGES, how_to_install

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

    def run(self, program, *arguments):
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
    def shipped(self):
        """Where the recipes and models lie in it."""
        (found,) = self.folder.glob("lib/python*/site-packages/paddle_dialog/shipped")
        return found


def install(base):
    """Build the wheel and install it without extras; skip the test where there is no package index."""
    environment = Installed(base / "environment", base / "work")
    environment.work.mkdir()
    (environment.work / "tasks.py").write_text("raise ImportError('of the user')", encoding="utf-8")
    venv.create(environment.folder)
    python = environment.folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-compile"]
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


def build_wheel(base):
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


def test_the_wheel(tmp_path):
    """One test, as several would each have to wait for their own environment."""
    installed = install(tmp_path)
    couplet = installed.run("paddle-dialog", "predict", "-c", "couplet", "晚风摇树树还挺", "--json")
    assert couplet.stderr == f"weights: {installed.shipped.resolve()}/pretrained/couplet\n"
    (answer,) = json.loads(couplet.stdout)["predictions"]
    assert len(answer["text"]) == 7 and answer["form"]["repeats_mirrored"]
    code = "from paddle_dialog import load; print(load('empathetic').predict(['I lost my dog.'])[0][0].text)"
    reply = installed.run("python", "-c", code)
    assert reply.status == 0 and reply.stdout.strip(), reply.stderr
    line = installed.run("paddle-dialog", "train", "-c", "couplet_sample").error_line()
    assert "pip install 'paddle_dialog[train]'" in line
    code = "import paddle_dialog; paddle_dialog.train('couplet_sample')"
    assert "pip install 'paddle_dialog[train]'" in installed.run("python", "-c", code).stderr.splitlines()[-1]
    assert [file.name for file in installed.work.iterdir()] == ["tasks.py"]
    packages = installed.shipped.parents[1]
    (ours,) = packages.glob("paddle_dialog-*.dist-info")
    assert (ours / "top_level.txt").read_text(encoding="utf-8") == "paddle_dialog\n"
    for page in ("serving/page/index.html", "tasks/couplet/page/tab.html", "tasks/empathetic/page/tab.css"):
        assert (packages / "paddle_dialog" / page).is_file()
    shutil.rmtree(installed.shipped / "pretrained")
    line = installed.run("paddle-dialog", "predict", "-c", "couplet", "春").error_line()
    assert "no weights: runs/couplet/best does not exist, and none ship with the recipe couplet" in line


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
FILES = {  # what each pinned file holds beside those it contains
    "requirements-light.txt": PROJECT["dependencies"] + BUILD,
    "requirements-serve.txt": EXTRAS["serve"],
    "requirements.txt": [line for line in EXTRAS["train"] if not line.startswith("setuptools")],
    "requirements-dev.txt": EXTRAS["dev"],
    "requirements-pretrained.txt": [
        *PROJECT["dependencies"],
        *EXTRAS["pretrained"],
        *EXTRAS["serve"],
        *(line for line in EXTRAS["dev"] if line.startswith("pytest")),
    ],
}


def requirements(lines):
    """Return those that hold for this Python, our own package aside."""
    found = [Requirement(line.partition("#")[0]) for line in lines]
    others = [r for r in found if r.name != PROJECT["name"]]
    return [r for r in others if r.marker is None or r.marker.evaluate({"extra": ""})]


@pytest.mark.parametrize("name", FILES)
def test_every_pin_is_one_that_the_package_allows_and_none_is_missing(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pins = {
        canonicalize_name(pin.name): next(iter(pin.specifier)).version
        for pin in requirements([line for line in lines if re.match(r"\w", line)])
    }
    asked = {canonicalize_name(asked.name): asked.specifier for asked in requirements(FILES[name])}
    assert pins.keys() == asked.keys()
    for package, version in pins.items():
        assert version in asked[package], (package, version, str(asked[package]))


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-pretrained.lock"])
def test_every_pin_is_locked_with_hashes_after_the_name_of_its_file(lock):
    text = (ROOT / lock).read_text(encoding="utf-8")
    header, *sections = re.split(r"^# (requirements\S*\.txt)\n", text, flags=re.M)
    files = sections[::2]
    assert files == (["requirements-pretrained.txt"] if "pretrained" in lock else [*FILES][:4])
    assert "://" not in header + "".join(sections)
    locked = set()
    for file, section in zip(files, sections[1::2], strict=True):
        entries = re.findall(r"^(\S+==.*?)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", section, re.M)
        assert len(entries) == len(re.findall(r"^\w", section, re.M)) > 0
        locked |= {f"{canonicalize_name(r.name)}{r.specifier}" for r in requirements([e[0] for e in entries])}
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        pins = requirements([line for line in lines if re.match(r"\w", line)])
        assert {f"{canonicalize_name(pin.name)}{pin.specifier}" for pin in pins} <= locked


def test_the_set_up_installs_by_hashes_and_refuses_any_other_file(tmp_path):
    pinned = [name for name in FILES if "pretrained" not in name]
    for path in ["pyproject.toml", "requirements.lock", *pinned]:
        shutil.copy(ROOT / path, tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "paddle_dialog").mkdir()
    script = shutil.copy(ROOT / "tools/setup_env.sh", tmp_path / "tools")
    lock = tmp_path / "requirements.lock"
    right = lock.read_text(encoding="utf-8")
    release = re.search(r"^pyyaml==[^\n]*(\n    --hash=\S+( \\)?)+", right, re.M)
    assert release is not None
    wrong = re.sub(r"sha256:\w{8}", "sha256:00000000", release[0])
    lock.write_text(right.replace(release[0], wrong), encoding="utf-8")

    def set_up():
        command = ["bash", script, "--light"]
        environment = {**os.environ, "PYTHON": sys.executable}
        done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
        if "Retrying (" in done.stderr:
            pytest.skip("the package index cannot be reached")
        return done

    refused = set_up()
    assert refused.returncode == 2 and "HASH" in refused.stderr.upper(), refused.stderr
    line = refused.stderr.splitlines()[-1]
    assert line.startswith("setup_env: pip could not install requirements-light.txt")
    lock.write_text(right, encoding="utf-8")
    done = set_up()
    assert done.returncode == 0, done.stderr
    code = "import numpy, yaml, safetensors, sentencepiece, paddle_dialog"
    subprocess.run([tmp_path / ".venv/bin/python", "-c", code], check=True)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("yaml", "yaml is not installed, though others need it; install paddle_dialog with its requirements"),
        ("paddle.nn", "pip install 'paddle_dialog[train]', or in a checkout bash tools/setup_env.sh"),
        ("fastapi", "pip install 'paddle_dialog[serve]', or in a checkout bash tools/setup_env.sh"),
        (
            "paddleformers",
            "'paddle_dialog[pretrained]', or in a checkout bash tools/setup_env.sh --pretrained",
        ),
    ],
)
def test_a_missing_package_is_named_with_what_brings_it(module, said):
    assert said in how_to_install(module)
    owners = packages_distributions()
    for extra in ("", "serve"):
        lines = EXTRAS[extra] if extra else PROJECT["dependencies"]
        brought = {canonicalize_name(requirement.name) for requirement in requirements(lines)}
        assert all({canonicalize_name(name) for name in owners[each]} & brought for each in PACKAGES[extra])
