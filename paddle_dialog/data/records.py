"""Records, which are JSON when they are printed or sent, and files of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paddle_dialog.errors import UserError

Record = dict[str, Any]  # what becomes one line of JSON


def check_writable(path: Path) -> None:
    """Open a file without changing what it holds, to fail before the work and not after it.

    Raises:
        UserError: it cannot be written.
    """
    _write(path, "a", ())


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write records, a line each.

    Raises:
        UserError: the file cannot be written.
    """
    _write(path, "w", records)


def _write(path: Path, mode: str, records: Iterable[Record]) -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    except OSError as error:
        raise UserError(f"{path}: cannot write the predictions ({error.strerror})") from error
