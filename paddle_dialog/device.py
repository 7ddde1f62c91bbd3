"""The device that a user names on the command line, and the instruction set of MKL on AMD processors.

Paddle's CPU build brings an old MKL that takes a slow path on processors not made by Intel: on a fifth-generation
EPYC its products took three to six times as long as needed (docs/speed.md). An environment variable chooses
the path; MKL reads it at the first product.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

from paddle_dialog.errors import UserError

VARIABLE = "MKL_DEBUG_CPU_TYPE"
AVX2, AVX512 = "5", "7"
AVX2_FLAGS = {"avx2", "fma"}
AVX512_FLAGS = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}  # those of Skylake-SP
CPU_INFO = Path("/proc/cpuinfo")


def select_device(name: str) -> str:
    """Make a device Paddle's current one; return it as Paddle writes it: `cpu` or `gpu:N`.

    Args:
        name: `cpu`, `gpu` (the first one), `gpu:N` (counted from 0), or `auto`: the first GPU if there is
            one, else the CPU. Under `paddle.distributed.launch` the first GPU is the one given to this process.
    """
    match = re.fullmatch(r"auto|cpu|gpu(?::(\d+))?", name, flags=re.ASCII)
    if match is None:
        raise UserError(f"--device: is '{name}'; give auto, cpu, gpu or gpu:N, where N counts from 0")
    if name in ("auto", "cpu") and not _gpu_build_installed():
        return "cpu"  # Paddle's default

    import paddle

    cards = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0
    if name == "cpu" or (name == "auto" and cards == 0):
        paddle.set_device("cpu")
        return "cpu"
    index = int(match[1] or os.environ.get("FLAGS_selected_gpus") or 0)  # noqa: SIM112 - the launcher's
    if index >= cards:
        build = "the GPU build" if paddle.is_compiled_with_cuda() else "the CPU build"
        raise UserError(
            f"--device: is '{name}', but the installed paddlepaddle ({build}) sees {cards} GPUs; install "
            "paddlepaddle-gpu as docs/scaling.md describes, check nvidia-smi, or give --device cpu"
        )
    paddle.set_device(f"gpu:{index}")
    return f"gpu:{index}"


def current_is_cpu() -> bool:
    """Return whether the CPU is Paddle's current device; imports Paddle only if its GPU build is installed."""
    if not _gpu_build_installed():
        return True
    import paddle

    return bool(paddle.get_device() == "cpu")


def _gpu_build_installed() -> bool:
    """Return whether the package of Paddle's GPU build is installed; `importlib.metadata` takes 30 ms for that."""
    folders = (Path(folder) for folder in sys.path)
    return any(next(folder.glob("paddlepaddle_gpu-*.dist-info"), None) is not None for folder in folders)


def choose_path() -> None:
    """Choose MKL's fast path in the environment, where MKL would not take it by itself.

    That is on AMD x86-64 processors with AVX2, under Linux. A value that the user has set stays. Child processes
    inherit the choice.
    """
    vendor, flags = _vendor_and_flags()
    if vendor == "AuthenticAMD" and flags >= AVX2_FLAGS and platform.machine() == "x86_64":
        os.environ.setdefault(VARIABLE, AVX512 if flags >= AVX512_FLAGS else AVX2)


def _vendor_and_flags() -> tuple[str, set[str]]:
    """Return what Linux reports about the first processor; nothing where it cannot be read."""
    try:
        text = CPU_INFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return "", set()
    lines = (line.partition(":") for line in text.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in lines}
    return fields.get("vendor_id", ""), set(fields.get("flags", "").split())
