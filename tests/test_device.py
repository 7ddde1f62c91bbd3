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


@needs_cpu_build
def test_auto_without_gpu_is_the_cpu():
    assert select_device("auto") == "cpu"
    assert paddle.get_device() == "cpu"


@needs_cpu_build
@pytest.mark.parametrize("name", ["gpu", "gpu:0", "gpu:3"])
def test_gpu_on_the_cpu_build_names_the_build_and_the_way_out(name):
    with pytest.raises(UserError, match=rf"'{name}'.*CPU build.*docs/scaling\.md.*--device cpu\.$"):
        select_device(name)


@pytest.mark.parametrize(
    ("name", "expected"), [("auto", "gpu:0"), ("gpu", "gpu:0"), ("gpu:1", "gpu:1"), ("cpu", "cpu")]
)
def test_choice_on_a_machine_with_two_gpus(machine, name, expected):
    chosen = machine(built_for_gpu=True, cards=2)
    assert select_device(name) == expected
    assert chosen == [expected]


def test_each_launched_process_takes_its_own_card(machine, monkeypatch):
    chosen = machine(built_for_gpu=True, cards=2)
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("FLAGS_selected_gpus", "1")
    assert select_device("gpu") == "gpu:1"
    assert chosen == ["gpu:1"]
    with pytest.raises(UserError, match="the launcher gives each process its card"):
        select_device("gpu:0")


def test_gpu_build_without_a_card(machine):
    chosen = machine(built_for_gpu=True, cards=0)
    with pytest.raises(UserError, match="no GPU was found") as error:
        select_device("gpu")
    assert "CPU build" not in str(error.value)
    assert chosen == []
    assert select_device("auto") == "cpu"


def test_gpu_number_beyond_the_last(machine):
    chosen = machine(built_for_gpu=True, cards=2)
    with pytest.raises(UserError, match=r"'gpu:2'.*gpu:0 to gpu:1"):
        select_device("gpu:2")
    assert chosen == []


@pytest.mark.parametrize("name", ["", "cuda", "GPU", "gpu:", "gpu:-1", "gpu:x", "gpu:1 ", "cpu:0", "gpu:１"])
def test_unknown_names_are_refused_with_the_known_ones(name):
    with pytest.raises(UserError, match="should be auto, cpu, gpu or gpu:N"):
        select_device(name)


def test_import_has_no_side_effects():
    code = "import sys, paddle_dialog.device; sys.exit('paddle' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
