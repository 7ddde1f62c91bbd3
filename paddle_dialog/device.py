"""The device that a user names on the command line."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from paddle_dialog.errors import UserError


def select_device(name: str) -> str:
    """Make a device Paddle's current one.

    Args:
        name: `cpu`, `gpu` (the first one), `gpu:N` (counted from 0), or `auto`: the first GPU if there is
            one, else the CPU. Under `paddle.distributed.launch` the first GPU is the one given to this process.

    Returns:
        What was chosen, as Paddle writes it: `cpu` or `gpu:N`.
    """
    match = re.fullmatch(r"auto|cpu|gpu(?::(\d+))?", name, flags=re.ASCII)
    if match is None:
        raise UserError(f"--device is '{name}', it should be auto, cpu, gpu or gpu:N (N counts from 0).")
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
            f"--device is '{name}', but the installed paddlepaddle ({build}) sees {cards} GPUs: install "
            "paddlepaddle-gpu as docs/scaling.md describes, check nvidia-smi, or use --device cpu."
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
