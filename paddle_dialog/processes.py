"""Work spread over forks of this process, which share its memory; how much it has."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

logger = logging.getLogger("paddle_dialog")

NOTE_SECONDS = 10.0  # between two notes on how far it is
FILES, FILES_OF_PROCESS = 40, 3  # that a process and each of its forks may need open
SET_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
AHEAD = 2  # items for each process that are taken before the first of them is done


def usable_cores() -> int:
    """Return the number of processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def can_fork() -> bool:
    """Return whether this process can be forked while it runs: on Linux, without Paddle's threads."""
    return sys.platform == "linux" and "paddle" not in sys.modules


def map_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], processes: int
) -> Generator[Result, None, None]:
    """Iterate over the results of `function` for each item, in order; items are read as they are needed.

    Args:
        function: need not be picklable: the processes are forks of this one.
        items: must be picklable, as must the results.
        processes: how many; with 1 the function is called in this process.
    """
    if processes == 1:
        yield from map(function, items)
        return
    import resource  # not on Windows, where there are no forks either

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < FILES + FILES_OF_PROCESS * processes:
        raise UserError(
            f"{processes} processes need more than {files} open files of ulimit -n; use fewer (predict: --workers)"
        )
    # Imported here: they take as long as a third of NumPy, and a single answer needs none of them.
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("fork"), initializer=_begin, initargs=(function, os.getpid())
    )
    pending: deque[Future[Any]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(_call, item))
            while pending and (pending[0].done() or len(pending) >= AHEAD * processes):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process was killed, perhaps because memory ran out; free some, or use fewer processes "
            "(predict: --workers)"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def answer_all(
    answer: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item], size: int
) -> list[Result]:
    """Answer many items on all cores where this process can be forked; log how many are done, and the time left.

    Args:
        answer: some of the items.
        items: in any order.
        size: items that are answered together; it decides on the last bits of an answer, the cores do not.
    """
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    processes = min(usable_cores(), max(len(parts), 1)) if can_fork() else 1
    began = noted = time.monotonic()
    results: list[Result] = []
    for part in map_in_order(answer, parts, processes):
        results += part
        now = time.monotonic()
        if now - noted >= NOTE_SECONDS and len(results) < len(items):
            noted = now
            left = (now - began) / len(results) * (len(items) - len(results))
            logger.info("%s of %s done, %.1f minutes left", f"{len(results):,}", f"{len(items):,}", left / 60)
    return results


def total_memory() -> int | None:
    """Return the bytes of this machine's memory; None where the system does not say."""
    names = getattr(os, "sysconf_names", {})
    known = "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else None


def check_memory(model: Any, tokens: int, copies: int) -> None:
    """Check that a network's weights fit into this machine's memory, before it is built.

    The matrices of layers and embeddings are counted, 4 bytes a number.

    Args:
        model: settings of a family; what they do not have is not counted.
        tokens: of its vocabularies.
        copies: arrays as large as the weights: 1 to answer; 4 to train, for gradients and moments.

    Raises:
        UserError: they do not fit.
    """

    def size(name: str) -> int:
        return getattr(model, name, 0)

    layers = size("encoder_layers") + size("decoder_layers") or size("num_layers")
    rows = layers * (4 * size("width") + 2 * size("inner_width")) + tokens
    needed, memory = 4 * copies * rows * size("width"), total_memory()
    if memory is not None and needed > memory:
        raise UserError(
            f"model: its weights would take at least {needed / 2**30:,.0f} GiB of memory, and this machine has "
            f"{memory / 2**30:,.0f}; take fewer or narrower layers"
        )


_function: Callable[[Any], Any]


def _begin(function: Callable[[Any], Any], parent: int) -> None:
    global _function
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches every process; only the parent reports it
    if sys.platform == "linux":  # end with the parent, however that ends
        import ctypes

        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    _function = function


def _call(item: Any) -> Any:
    return _function(item)
