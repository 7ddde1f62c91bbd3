"""Training on the CPU keeps the memory of large tensors."""

import os
import platform
import subprocess
import sys

import pytest

from paddle_dialog.training import allocator

# Page faults of one gigabyte in tensors of 64 MB, one after the other, in 4 kB pages: 262,144 if each is mapped anew.
FAULTS = """
import ctypes, resource, sys
from paddle_dialog.training.allocator import keep_freed_memory
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
kept = keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(16):
    address = libc.malloc(2**26)
    ctypes.memset(address, 1, 2**26)
    libc.free(address)
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(**environment: str) -> tuple[bool, int]:
    clean = {name: value for name, value in os.environ.items() if name not in allocator.CHOICES}
    out = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env={**clean, **environment},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    return out[0] == "True", int(out[1])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="tells of glibc")
def test_freed_memory_is_used_again_unless_the_user_has_chosen() -> None:
    kept, few = faults()
    assert kept
    # A setting of the user's, here glibc's own default, is left as it is.
    untouched, many = faults(MALLOC_MMAP_MAX_="65536")
    assert not untouched
    assert few < many / 8, (few, many)


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in allocator.CHOICES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())
    assert not allocator.keep_freed_memory()
