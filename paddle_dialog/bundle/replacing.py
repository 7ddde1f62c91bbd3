"""Files and folders that are on the disk whole, whatever happens meanwhile."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def replace_folder(folder: Path, partial: Path, previous: Path) -> None:
    """Replace `folder` by `partial` and keep it as `previous`; undo this on failure."""
    if not folder.exists():
        partial.rename(folder)
        return
    if previous.exists():
        shutil.rmtree(previous)
    folder.rename(previous)
    try:
        partial.rename(folder)
    except OSError:
        previous.rename(folder)
        raise


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk, so that a power cut cannot leave an incomplete one."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; a file's own `fsync` does not guarantee that."""
    if os.name != "posix":
        return  # other systems cannot open a folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
