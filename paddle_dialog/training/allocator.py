"""How the C library hands out memory while a model trains on the CPU."""

from __future__ import annotations

import ctypes
import os

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # glibc's malloc.h
LARGEST_INT = 2**31 - 1
CHOICES = ("LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_")


def keep_freed_memory() -> bool:
    """Makes glibc keep the memory of large tensors for the next ones, instead of giving it back each time.

    By default every tensor above some megabytes is mapped anew, and the kernel clears and maps its pages one by
    one; that costs as much as computing on them. Where the user has chosen an allocator or its settings by one
    of ``CHOICES``, or there is no glibc, nothing is changed.

    Returns:
        Whether it is so now.
    """
    if any(os.environ.get(name) for name in CHOICES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    # ctypes knows no signature; both arguments and the result are ints, 1 for success.
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, LARGEST_INT))
