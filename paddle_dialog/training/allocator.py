"""Memory allocation by the C library while a model trains on the CPU."""

from __future__ import annotations

import ctypes
import os

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # glibc's malloc.h
LARGEST_INT = 2**31 - 1
CHOICES = ("LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_")


def keep_freed_memory() -> bool:
    """Make glibc keep the memory of large tensors for the next ones, instead of giving it back each time.

    By default every tensor above some megabytes is mapped anew, and the kernel clears and maps its pages one by
    one, which costs as much as computing on them. Nothing changes if the user has chosen an allocator or its
    settings by one of `CHOICES`, or if there is no glibc.

    Returns:
        Whether glibc now keeps the memory.
    """
    if any(os.environ.get(name) for name in CHOICES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    # ctypes has no signature for it; both arguments and the result are ints, 1 for success.
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, LARGEST_INT))
