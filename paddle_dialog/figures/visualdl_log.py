"""A VisualDL log file that a resumed run continues."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from pathlib import Path
from typing import Any

_LENGTH = struct.Struct("<Q")  # before each record in the file


class VisualDLLog:
    """Appends records to the newest file of a folder, the only one that VisualDL shows.

    `visualdl.LogWriter` starts a new file each time, which hides the one before, so that a resumed run would lose its
    past; and it writes from a thread that only prints errors. Records come from
    `visualdl.component.base_component`.

    Args:
        folder: made where it is missing.
        first_step: steps already done; 0 starts a new file. Otherwise the newest file is continued, without
            the points of later steps, which a killed run had written and will write again.

    Raises:
        OSError: the folder or its file cannot be written.
    """

    def __init__(self, folder: Path, first_step: int = 0) -> None:
        from visualdl.component.base_component import meta_data

        folder.mkdir(parents=True, exist_ok=True)
        newest = max(folder.glob("vdlrecords.*.log"), default=None)
        self.is_new = first_step == 0 or newest is None
        if newest is None or self.is_new:
            self.path = _next_path(folder, newest)
            self.write(
                meta_data(walltime=milliseconds())
            )  # VisualDL recognises its files by this first record
        else:
            self.path = _without_later_steps(newest, first_step)

    def write(self, record: Any) -> None:
        """Append a record, wholly or not at all.

        Raises:
            OSError: the file cannot be written, e.g. because the disk is full.
        """
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with self.path.open("ab") as file:
                file.write(_frame(record.SerializeToString()))
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(self.path, size)  # an incomplete record would make the whole file unreadable
            raise


def milliseconds() -> int:
    """Return the time now, in VisualDL's unit."""
    return round(time.time() * 1000)


def _next_path(folder: Path, newest: Path | None) -> Path:
    """Return a name that sorts after all others, even within the same second."""
    second = int(time.time())
    if newest is not None and newest.name.split(".")[1].isdecimal():
        second = max(second, int(newest.name.split(".")[1]) + 1)
    return folder / f"vdlrecords.{second:010d}.log"


def _without_later_steps(path: Path, last_step: int) -> Path:
    """Return the file itself if it ends at `last_step`, else a copy of it up to there."""
    from visualdl.proto.record_pb2 import Record

    content = path.read_bytes()
    kept = b"".join(
        _frame(record) for record in _records(content) if Record.FromString(record).values[0].id <= last_step
    )
    if len(kept) == len(content):
        return path
    # Not in place: a running VisualDL would go on reading in the middle of a record.
    shorter = _next_path(path.parent, path)
    try:
        shorter.write_bytes(kept)
    except OSError:
        shorter.unlink(missing_ok=True)  # otherwise the newest file would hide the whole one
        raise
    return shorter


def _records(content: bytes) -> list[bytes]:
    """Return the whole records of a file, without a last one that was cut off."""
    records, start = [], 0
    while start + _LENGTH.size <= len(content):
        end = start + _LENGTH.size + _LENGTH.unpack_from(content, start)[0]
        if end > len(content):
            break
        records.append(content[start + _LENGTH.size : end])
        start = end
    return records


def _frame(record: bytes) -> bytes:
    return _LENGTH.pack(len(record)) + record
