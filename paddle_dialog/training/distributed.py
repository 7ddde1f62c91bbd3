"""Data-parallel training in several processes: which one this is, and sums over all of them.

`python -m paddle.distributed.launch` starts the processes and passes each its rank by environment variables.
In a single process the functions here do next to nothing; `orderly_stop` turns signals into a request to stop.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import numpy as np
import paddle
from paddle import Tensor

_barriers = itertools.count(1)

LOST_CONNECTION = (
    "gloo",
    "Connection reset by peer",
    "Connection closed by peer",
    "Broken pipe",
    "NCCL",
    "TCP receive error",  # Paddle's store, a ValueError
    "TCP send error",
)


def num_ranks() -> int:
    """Return the number of processes that train together."""
    return int(paddle.distributed.get_world_size())


def rank() -> int:
    """Return the number of this process among them, from 0."""
    return int(paddle.distributed.get_rank())


def is_main() -> bool:
    """Return whether this process is the one that writes, rank 0."""
    return rank() == 0


def join_processes(device: str) -> None:
    """Connect this process with the others, through NCCL on GPUs and gloo on CPUs.

    Args:
        device: what `select_device` chose.
    """
    if num_ranks() > 1:
        if device == "cpu":  # a Paddle built for GPUs would choose NCCL
            os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
        paddle.distributed.init_parallel_env()


def barrier() -> None:
    """Wait until all processes are here, however long that takes.

    gloo gives up on a process that is 30 seconds late, and Paddle has no setting for that. So after one process has
    worked alone, or all have worked for unequal times, they wait at the launcher's store before they sum anything.
    On GPUs, where NCCL waits for half an hour, this does nothing.
    """
    if num_ranks() == 1 or paddle.get_device() != "cpu":
        return
    store = paddle.base.core.create_or_get_global_tcp_store()
    expected = num_ranks() * next(_barriers)
    with _signals_held():
        arrived = store.add("paddle_dialog/arrived", 1)
    while arrived < expected:
        time.sleep(0.01)
        with _signals_held():
            arrived = store.add("paddle_dialog/arrived", 0)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Hold signals back within a `with` block: Paddle's store mistakes one for a broken connection."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    held = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def sum_over_ranks(values: Sequence[float]) -> list[float]:
    """Sum each value over all processes, in double precision and in the order of the ranks.

    All processes get exactly the same sums, so decisions based on them agree.
    """
    if num_ranks() == 1:
        return [float(value) for value in values]
    parts: list[Tensor] = []
    paddle.distributed.all_gather(parts, paddle.to_tensor(np.asarray(values, np.float64)))
    return np.stack([part.numpy() for part in parts]).sum(axis=0).tolist()


@paddle.no_grad()
def average_gradients(parameters: Sequence[Tensor], units: int, flag: bool) -> bool:
    """Replace each gradient by its mean over all processes, weighted by their units, in one exchange.

    Args:
        parameters: those that are trained, in the same order in every process; one without gradient has none in
            any process.
        units: of this process in the step, which its gradients are a mean over (see `Task.count_units`).
        flag: of this process.

    Returns:
        Whether the flag is set in any process.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if num_ranks() == 1 or not gradients:
        return flag
    ones = paddle.to_tensor([1.0, float(flag)])
    # [all, 2]
    flat = paddle.concat([*(gradient.astype("float32").flatten() for gradient in gradients), ones])
    flat.scale_(float(units))
    paddle.distributed.all_reduce(flat)
    total, flags = flat[-2:].tolist()
    # In place: a new array of this size costs ten milliseconds of page faults.
    flat.scale_(1.0 / max(total, 1.0))
    *parts, _ = paddle.split(flat, [*(gradient.size for gradient in gradients), 2])
    for gradient, part in zip(gradients, parts, strict=True):
        paddle.assign(part.reshape(gradient.shape).astype(gradient.dtype), gradient)
    return flags > 0.0


def lost_connection(error: Exception) -> bool:
    """Return whether an error means that another process of the run has ended."""
    return num_ranks() > 1 and any(sign in str(error) for sign in LOST_CONNECTION)


@contextmanager
def orderly_stop() -> Iterator[Callable[[], bool]]:
    """Treat a first SIGINT or SIGTERM within a `with` block as a request to stop; a second raises an interrupt.

    Outside the main thread, where Python handles no signals, the block runs unchanged. Paddle's launcher sends each
    SIGTERM several times, so with several processes a second one means nothing.

    Yields:
        A function that returns whether a stop after the current step was requested.
    """
    requested = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if requested and number == signal.SIGTERM and num_ranks() > 1:
            return
        if requested:
            raise KeyboardInterrupt
        requested = True
        # No log line: the signal may come while the log writes.
        os.write(2, b"stopping after this step; a second signal stops at once\n")

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
