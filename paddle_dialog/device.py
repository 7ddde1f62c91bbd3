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

    Raises:
        UserError: the name is none of these, or the GPU it asks for cannot be used.
    """
    match = re.fullmatch(r"auto|cpu|gpu(?::(\d+))?", name, flags=re.ASCII)
    if match is None:
        raise UserError(f"--device is '{name}', it should be auto, cpu, gpu or gpu:N (N counts from 0).")

    if name in ("auto", "cpu") and not _gpu_build_installed():
        return "cpu"  # Paddle's default

    import paddle

    built_for_gpu = paddle.is_compiled_with_cuda()
    cards = paddle.device.cuda.device_count() if built_for_gpu else 0
    if name == "cpu" or (name == "auto" and cards == 0):
        return _set_current("cpu")

    launched = _launched_card()
    if launched is not None and match[1] is not None:
        raise UserError(
            f"--device is '{name}', but the launcher gives each process its card: use --device gpu, and choose "
            "cards with the launcher's --devices."
        )
    index = int(match[1] or launched or 0)
    if not built_for_gpu:
        raise UserError(
            f"--device is '{name}', but the installed paddlepaddle is the CPU build: install "
            "paddlepaddle-gpu as docs/scaling.md describes, or use --device cpu."
        )
    if cards == 0:
        raise UserError(
            f"--device is '{name}', but no GPU was found on this machine: check that nvidia-smi lists one "
            "and CUDA_VISIBLE_DEVICES does not hide it, or use --device cpu."
        )
    if index >= cards:
        raise UserError(
            f"--device is '{name}', but the last GPU that Paddle sees here is gpu:{cards - 1}: name one from "
            f"gpu:0 to gpu:{cards - 1}."
        )
    return _set_current(f"gpu:{index}")


def current_is_cpu() -> bool:
    """Return whether the CPU is Paddle's current device; imports Paddle only if its GPU build is installed."""
    if not _gpu_build_installed():
        return True
    import paddle

    return bool(paddle.get_device() == "cpu")


def _gpu_build_installed() -> bool:
    """Return whether the package of Paddle's GPU build is installed; `importlib.metadata` takes 30 ms to say so."""
    folders = (Path(folder) for folder in sys.path)
    return any(next(folder.glob("paddlepaddle_gpu-*.dist-info"), None) is not None for folder in folders)


def _launched_card() -> str | None:
    """Return the card that the launcher chose for this process, if it is one of several."""
    if int(os.environ.get("PADDLE_TRAINERS_NUM", "1")) < 2:
        return None
    return os.environ.get("FLAGS_selected_gpus")  # noqa: SIM112


def _set_current(device: str) -> str:
    import paddle

    paddle.set_device(device)
    return device
