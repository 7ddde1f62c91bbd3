"""Which instructions MKL is told to use, on which processors, and who decides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Trained

from paddle_dialog import mkl

EPYC = "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu fma avx2 {}\n\nprocessor\t: 1\nvendor_id\t: other\n"
AVX512 = "avx512f avx512dq avx512cd avx512bw avx512vl"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return fake an AMD machine with AVX-512 and Paddle's MKL, without choices of its user; its `/proc/cpuinfo`."""
    for name in mkl.CHOICES:
        monkeypatch.setenv(name, "")  # so that the test's end brings back what was there
        monkeypatch.delenv(name)
    monkeypatch.setattr(mkl, "_chosen", None)
    monkeypatch.setattr(mkl.platform, "machine", lambda: "x86_64")
    library = tmp_path / "paddle" / mkl.LIBRARY
    library.parent.mkdir(parents=True)
    library.touch()
    (tmp_path / "paddle" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "paddle", raising=False)
    cpu_info = tmp_path / "cpuinfo"
    cpu_info.write_text(EPYC.format(AVX512))
    monkeypatch.setattr(mkl, "CPU_INFO", cpu_info)
    return cpu_info


@pytest.mark.parametrize(
    ("vendor", "flags", "value"),
    [
        ("AuthenticAMD", f"fma avx2 {AVX512}", "7"),
        ("AuthenticAMD", f"fma avx2 {AVX512}".replace(" avx512vl", ""), "5"),
        ("AuthenticAMD", "fma avx2", "5"),
        ("AuthenticAMD", "fma avx", None),
        ("GenuineIntel", f"fma avx2 {AVX512}", None),
        ("", "", None),
    ],
)
def test_the_path_of_a_processor(vendor: str, flags: str, value: str | None) -> None:
    assert mkl.fast_path(vendor, set(flags.split())) == value


def test_it_is_set_and_said_on_a_processor_of_amd(machine: Path) -> None:
    assert mkl.describe_path() is None
    mkl.choose_path()
    assert os.environ[mkl.VARIABLE] == "7"
    assert mkl.describe_path() == (
        "matrix products: MKL_DEBUG_CPU_TYPE=7 (AVX-512) was set for this AMD processor (docs/performance.md)"
    )
    del os.environ[mkl.VARIABLE]
    machine.write_text(EPYC.format(""))
    mkl.choose_path()
    assert os.environ[mkl.VARIABLE] == "5"


@pytest.mark.parametrize("name", mkl.CHOICES)
def test_a_choice_of_the_user_stays(machine: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "4")
    mkl.choose_path()
    assert os.environ.get(mkl.VARIABLE) == ("4" if name == mkl.VARIABLE else None)
    if name == mkl.VARIABLE:
        assert mkl.describe_path() == "matrix products: MKL_DEBUG_CPU_TYPE=4, as the environment says"


@pytest.mark.parametrize("case", ["intel", "arm", "unreadable", "garbled", "empty", "no_mkl", "no_paddle"])
def test_elsewhere_nothing_is_set(machine: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    library = machine.parent / "paddle" / mkl.LIBRARY
    if case == "intel":
        machine.write_text(EPYC.format(AVX512).replace("AuthenticAMD", "GenuineIntel"))
    elif case == "arm":
        monkeypatch.setattr(mkl.platform, "machine", lambda: "aarch64")
    elif case == "unreadable":
        machine.unlink()
    elif case == "garbled":
        machine.write_bytes(b"\xff\xfe\x00vendor\n: :\n")
    elif case == "empty":
        machine.write_text("")
    elif case == "no_mkl":
        library.unlink()
    else:
        monkeypatch.setattr(mkl, "find_spec", lambda name: None)
    mkl.choose_path()
    assert mkl.VARIABLE not in os.environ
    assert mkl.describe_path() is None


def test_importing_the_library_chooses_without_importing_paddle() -> None:
    program = (
        "import os, sys, paddle_dialog; from paddle_dialog import mkl; "
        "wanted = mkl.fast_path(*mkl._vendor_and_flags()) if mkl._mkl_is_there() else None; "
        "print(os.environ.get(mkl.VARIABLE) == wanted, 'paddle' in sys.modules)"
    )
    clean = {name: value for name, value in os.environ.items() if name not in mkl.CHOICES}
    outcome = subprocess.run(
        [sys.executable, "-c", program], env=clean, check=True, capture_output=True, text=True
    )
    assert outcome.stdout.split() == ["True", "False"]


def test_a_run_says_it_once(trained: dict[str, Trained]) -> None:
    said = [line for line in trained["lstm"].outcome.stderr.splitlines() if "matrix products: " in line]
    assert len(said) == (0 if mkl.describe_path() is None else 1)
