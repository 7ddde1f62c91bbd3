"""The device, and the path of MKL."""

import os
import subprocess
import sys

import paddle
import pytest

from paddle_dialog import device
from paddle_dialog.device import select_device
from paddle_dialog.errors import UserError

needs_cpu_build = pytest.mark.skipif(paddle.is_compiled_with_cuda(), reason="tells of the CPU build")


@pytest.fixture
def machine(monkeypatch):
    """Return a function that makes Paddle report such a machine and lists the devices it is then set to."""

    def pretend(built_for_gpu, cards):
        chosen = []
        monkeypatch.setattr(device, "_gpu_build_installed", lambda: built_for_gpu)
        monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: built_for_gpu)
        monkeypatch.setattr(paddle.device.cuda, "device_count", lambda: cards)
        monkeypatch.setattr(paddle, "set_device", chosen.append)
        return chosen

    return pretend


def test_cpu_is_where_new_tensors_go():
    assert select_device("cpu") == "cpu"
    assert paddle.get_device() == "cpu"
    assert paddle.zeros([1]).place.is_cpu_place()


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("auto", "", "gpu:0"),
        ("gpu", "", "gpu:0"),
        ("gpu:1", "", "gpu:1"),
        ("cpu", "", "cpu"),
        ("gpu", "1", "gpu:1"),
    ],
)
def test_choice_on_a_machine_with_two_gpus(machine, monkeypatch, name, given, expected):
    """A launched process takes the card that the launcher has given it."""
    chosen = machine(built_for_gpu=True, cards=2)
    monkeypatch.setenv("FLAGS_selected_gpus", given)
    assert select_device(name) == expected
    assert chosen == [expected]


@pytest.mark.parametrize(("name", "cards"), [("gpu", 0), ("gpu:2", 2)])
def test_a_card_that_is_not_there(machine, name, cards):
    chosen = machine(built_for_gpu=True, cards=cards)
    with pytest.raises(UserError, match=rf"'{name}'.*GPU build.* sees {cards} GPUs.*--device cpu\.$"):
        select_device(name)
    assert chosen == [] and select_device("auto") == ("gpu:0" if cards else "cpu")


@needs_cpu_build
def test_a_gpu_on_the_cpu_build():
    with pytest.raises(UserError, match=r"'gpu:3'.*CPU build.*docs/scaling\.md.*--device cpu\.$"):
        select_device("gpu:3")


@pytest.mark.parametrize("name", ["", "cuda", "GPU", "gpu:", "gpu:-1", "gpu:x", "gpu:1 ", "cpu:0", "gpu:１"])
def test_unknown_names_are_refused_with_the_known_ones(name):
    with pytest.raises(UserError, match="should be auto, cpu, gpu or gpu:N"):
        select_device(name)


EPYC = "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu fma avx2 {}\n\nprocessor\t: 1\nvendor_id\t: other\n"
AVX512 = "avx512f avx512dq avx512cd avx512bw avx512vl"


@pytest.fixture
def amd(tmp_path, monkeypatch):
    """Fake an AMD machine with AVX-512 and Paddle's MKL, without choices of its user; its `/proc/cpuinfo`."""
    monkeypatch.setenv(device.VARIABLE, "")  # so that the test's end brings back what was there
    monkeypatch.delenv(device.VARIABLE)
    monkeypatch.setattr(device.platform, "machine", lambda: "x86_64")
    library = tmp_path / "paddle" / device.LIBRARY
    library.parent.mkdir(parents=True)
    library.touch()
    (tmp_path / "paddle" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "paddle", raising=False)
    cpu_info = tmp_path / "cpuinfo"
    cpu_info.write_text(EPYC.format(AVX512))
    monkeypatch.setattr(device, "CPU_INFO", cpu_info)
    return cpu_info


@pytest.mark.parametrize(
    ("vendor", "flags", "value"),
    [
        *[("AuthenticAMD", f"fma avx2 {AVX512}", "7"), ("AuthenticAMD", "fma avx2", "5")],
        ("AuthenticAMD", f"fma avx2 {AVX512}".replace(" avx512vl", ""), "5"),
        *[("AuthenticAMD", "fma avx", None), ("GenuineIntel", f"fma avx2 {AVX512}", None), ("", "", None)],
    ],
)
def test_the_path_of_a_processor(vendor, flags, value):
    assert device.fast_path(vendor, set(flags.split())) == value


def test_it_is_set_on_a_processor_of_amd_unless_the_user_has_chosen(amd, monkeypatch):
    device.choose_path()
    assert os.environ[device.VARIABLE] == "7"
    del os.environ[device.VARIABLE]
    amd.write_text(EPYC.format(""))
    device.choose_path()
    assert os.environ[device.VARIABLE] == "5"
    monkeypatch.setenv(device.VARIABLE, "4")
    device.choose_path()
    assert os.environ[device.VARIABLE] == "4"


@pytest.mark.parametrize("case", ["intel", "arm", "unreadable", "garbled", "empty", "no_mkl", "no_paddle"])
def test_elsewhere_nothing_is_set(amd, monkeypatch, case):
    library = amd.parent / "paddle" / device.LIBRARY
    if case == "intel":
        amd.write_text(EPYC.format(AVX512).replace("AuthenticAMD", "GenuineIntel"))
    elif case == "arm":
        monkeypatch.setattr(device.platform, "machine", lambda: "aarch64")
    elif case == "unreadable":
        amd.unlink()
    elif case == "garbled":
        amd.write_bytes(b"\xff\xfe\x00vendor\n: :\n")
    elif case == "empty":
        amd.write_text("")
    elif case == "no_mkl":
        library.unlink()
    else:
        monkeypatch.setattr(device, "find_spec", lambda name: None)
    device.choose_path()
    assert device.VARIABLE not in os.environ


def test_importing_the_library_chooses_without_importing_paddle():
    program = (
        "import os, sys, paddle_dialog; from paddle_dialog import device; "
        "wanted = device.fast_path(*device._vendor_and_flags()) if device._mkl_is_there() else None; "
        "print(os.environ.get(device.VARIABLE) == wanted, 'paddle' in sys.modules)"
    )
    clean = {name: value for name, value in os.environ.items() if name != device.VARIABLE}
    outcome = subprocess.run(
        [sys.executable, "-c", program], env=clean, check=True, capture_output=True, text=True
    )
    assert outcome.stdout.split() == ["True", "False"]
