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
    """Appends records to the one file that VisualDL shows of a folder, its newest.

    ``visualdl.LogWriter`` starts a file each time, which hides the one before, so that a resumed run would lose
    its past; and it writes from a thread that only prints what goes wrong. Records come from
    ``visualdl.component.base_component``.

    Args:
        folder: made where it is missing.
        first_step: steps already done; 0 starts a new file. Otherwise the newest file is continued, without
            the points of later steps, which the run had written before it was killed and will write again.

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
            self.write(meta_data(walltime=milliseconds()))  # VisualDL knows its files by this first record
        else:
            self.path = _without_later_steps(newest, first_step)

    def write(self, record: Any) -> None:
        """Appends a record, wholly or not at all.

        Raises:
            OSError: the file cannot be written; a full disk, say.
        """
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with self.path.open("ab") as file:
                file.write(_frame(record.SerializeToString()))
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(self.path, size)  # a half record would make the whole file unreadable
            raise


def milliseconds() -> int:
    """The time now, in VisualDL's unit."""
    return round(time.time() * 1000)


def _next_path(folder: Path, newest: Path | None) -> Path:
    """A name later than any other, also within the same second."""
    second = int(time.time())
    if newest is not None and newest.name.split(".")[1].isdecimal():
        second = max(second, int(newest.name.split(".")[1]) + 1)
    return folder / f"vdlrecords.{second:010d}.log"


def _without_later_steps(path: Path, last_step: int) -> Path:
    """The file itself if it ends at ``last_step``, else a new one with what it holds up to there."""
    from visualdl.proto.record_pb2 import Record

    content = path.read_bytes()
    kept = b"".join(
        _frame(record) for record in _records(content) if Record.FromString(record).values[0].id <= last_step
    )
    if len(kept) == len(content):
        return path
    # Not in place: a VisualDL that is running would read on in the middle of a record.
    shorter = _next_path(path.parent, path)
    try:
        shorter.write_bytes(kept)
    except OSError:
        shorter.unlink(missing_ok=True)  # the newest file would hide the whole one
        raise
    return shorter


def _records(content: bytes) -> list[bytes]:
    """The whole records of a file; a last one that was cut off is left out."""
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
