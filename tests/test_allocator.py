"""The allocator's setting, in a process of its own since it cannot be taken back."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource, sys
from paddle_dialog.allocator import keep_freed_memory

if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit(77)
library = ctypes.CDLL(None)
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]
size = 64 << 20
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def touch():
    block = library.malloc(size)
    ctypes.memset(block, 1, size)
    library.free(block)
touch()
before = faults()
for _ in range(4):
    touch()
print(faults() - before)
"""


def page_faults(mode: str) -> int:
    outcome = subprocess.run([sys.executable, "-c", PROGRAM, mode], capture_output=True, text=True)
    if outcome.returncode == 77:
        pytest.skip("the C library is not glibc")
    assert outcome.returncode == 0, outcome.stderr
    return int(outcome.stdout)


def test_memory_freed_and_taken_again_costs_no_page_faults() -> None:
    assert page_faults("keep") < 10 < page_faults("default")
