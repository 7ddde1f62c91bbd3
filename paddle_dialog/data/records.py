"""Records, which are JSON when they are printed or sent, and files of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError

Record = dict[str, Any]  # what becomes one line of JSON
T = TypeVar("T")


def read_records(path: str | Path, parse: Callable[[Record], T], shape: str) -> Iterator[T]:
    """Iterate over what the lines of a file say, blank ones left out.

    Args:
        parse: makes something of a record; may raise UserError, ValueError, KeyError, TypeError or AttributeError.
        shape: what a line must be, for messages.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
            if not isinstance(record, dict):
                raise ValueError(f"a JSON {type(record).__name__} found")
            made = parse(record)
        except UserError as error:
            raise UserError(f"{path}:{number}: {error}") from error
        except KeyError as error:
            raise UserError(f"{path}:{number}: key {error} is missing; a line must be {shape}") from error
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}; a line must be {shape}") from error
        except (TypeError, AttributeError) as error:
            fault = f"a value of another type than it should be ({error})"
            raise UserError(f"{path}:{number}: {fault}; a line must be {shape}") from error
        yield made


def parse_json(text: str) -> Any:
    """Parse a JSON text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"broken JSON at column {error.colno} ({error.msg})") from error
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    except ValueError as error:  # Python's limit on the digits of a number
        raise ValueError("JSON with a number of thousands of digits") from error


def check_writable(path: Path) -> None:
    """Open a file without changing what it holds, to fail before the work and not after it."""
    _write(path, "a", ())


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write records, a line each."""
    _write(path, "w", records)


def _write(path: Path, mode: str, records: Iterable[Record]) -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
