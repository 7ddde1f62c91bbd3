"""Ctrl-C and SIGTERM as an orderly end of a run."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from paddle_dialog.training.distributed import num_ranks


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
