"""Answers as JSON lines in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paddle_dialog.errors import UserError


def check_writable(path: Path) -> None:
    """Open a file without changing what it holds, to fail before the work and not after it.

    Raises:
        UserError: it cannot be written.
    """
    _write(path, "a", ())


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records, a line each.

    Raises:
        UserError: the file cannot be written.
    """
    _write(path, "w", records)


def _write(path: Path, mode: str, records: Iterable[Mapping[str, Any]]) -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    except OSError as error:
        raise UserError(f"{path}: cannot write the predictions ({error.strerror})") from error
