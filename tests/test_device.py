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
    with pytest.raises(UserError, match=rf"'{name}'.*GPU build.* sees {cards} GPUs.*--device cpu$"):
        select_device(name)
    assert chosen == [] and select_device("auto") == ("gpu:0" if cards else "cpu")


@needs_cpu_build
def test_a_gpu_on_the_cpu_build():
    with pytest.raises(UserError, match=r"'gpu:3'.*CPU build.*docs/scaling\.md.*--device cpu$"):
        select_device("gpu:3")


@pytest.mark.parametrize("name", ["", "cuda", "GPU", "gpu:", "gpu:-1", "gpu:x", "gpu:1 ", "cpu:0", "gpu:１"])
def test_unknown_names_are_refused_with_the_known_ones(name):
    with pytest.raises(UserError, match=r"; give auto, cpu, gpu or gpu:N, where N counts from 0$"):
        select_device(name)


EPYC = "processor\t: 0\nvendor_id\t: {}\nflags\t\t: fpu {}\n\nprocessor\t: 1\nvendor_id\t: other\n"
AMD, AVX2, AVX512 = "AuthenticAMD", "fma avx2", "fma avx2 avx512f avx512dq avx512cd avx512bw avx512vl"


@pytest.fixture
def chosen(tmp_path, monkeypatch):
    """Return a function that returns the path chosen on an x86-64 machine with such a `/proc/cpuinfo`."""

    def choose(cpu_info):
        file = tmp_path / "cpuinfo"
        if cpu_info is not None:
            file.write_bytes(cpu_info if isinstance(cpu_info, bytes) else cpu_info.encode())
        monkeypatch.setattr(device, "CPU_INFO", file)
        device.choose_path()
        return os.environ.get(device.VARIABLE)

    monkeypatch.setenv(device.VARIABLE, "")  # so that the test's end brings back what was there
    monkeypatch.delenv(device.VARIABLE)
    monkeypatch.setattr(device.platform, "machine", lambda: "x86_64")
    return choose


@pytest.mark.parametrize(
    ("cpu_info", "path"),
    [
        *[(EPYC.format(AMD, AVX512), "7"), (EPYC.format(AMD, AVX2), "5")],
        (EPYC.format(AMD, AVX512.replace(" avx512vl", "")), "5"),
        *[(EPYC.format(AMD, "fma avx"), None), (EPYC.format("GenuineIntel", AVX512), None)],
        *[("", None), (b"\xff\xfe\x00vendor\n: :\n", None), (None, None)],
    ],
)
def test_mkl_is_given_the_path_of_a_processor_of_amd(chosen, cpu_info, path):
    assert chosen(cpu_info) == path


def test_what_the_user_has_chosen_stays_and_other_machines_have_no_path(chosen, monkeypatch):
    monkeypatch.setattr(device.platform, "machine", lambda: "aarch64")
    assert chosen(EPYC.format(AMD, AVX512)) is None
    monkeypatch.setattr(device.platform, "machine", lambda: "x86_64")
    monkeypatch.setenv(device.VARIABLE, "4")
    assert chosen(EPYC.format(AMD, AVX512)) == "4"


def test_importing_the_library_chooses_without_importing_paddle():
    program = (
        "import os, sys, paddle_dialog; from paddle_dialog import device; "
        "found = os.environ.pop(device.VARIABLE, None); device.choose_path(); "
        "print(os.environ.get(device.VARIABLE) == found, 'paddle' in sys.modules)"
    )
    clean = {name: value for name, value in os.environ.items() if name != device.VARIABLE}
    outcome = subprocess.run(
        [sys.executable, "-c", program], env=clean, check=True, capture_output=True, text=True
    )
    assert outcome.stdout.split() == ["True", "False"]
