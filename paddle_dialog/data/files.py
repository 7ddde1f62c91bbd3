"""Files of lines: UTF-8 text, plain or compressed, and JSON records; every failure is reported as a UserError."""

from __future__ import annotations

import gzip
import importlib.resources
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from paddle_dialog.errors import UserError

Record = dict[str, Any]  # what becomes one line of JSON
T = TypeVar("T")

MANIFEST = "bundle.json"  # the file that makes a folder a bundle
MAX_LINE = 1 << 26  # bytes; an archive of some kilobytes can unpack to gigabytes without a line's end
_BOM = b"\xef\xbb\xbf"
_LIST_NAME = re.compile(r"\[(?P<name>[^]]+)\].*")
_LINES = "write it as UTF-8 text, an example a line"
_NOT_TEXT = {  # by the first bytes
    b"PK\x03\x04": "a zip archive or an Excel file, not text; save a table as CSV (UTF-8), or unpack the archive",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file, not text; save it as CSV (UTF-8)",
    b"\x93NUMPY": f"an array of NumPy, not text; {_LINES}, as docs/your_data.md shows for those of EmpDG and MoEL",
    b"PAR1": f"a Parquet table, not text; {_LINES}, e.g. pandas.read_parquet(…).to_csv(…, index=False)",
    **{
        b"\x80" + bytes([protocol]): f"a pickle of Python, not text; load it where it comes from and {_LINES}"
        for protocol in range(2, 6)
    },
    b"\x1f\x8b": "a gzip archive without its suffix; rename it to end in .gz",
    b"\xfd7zXZ": "an xz archive without its suffix; rename it to end in .xz",
    b"\xff\xfe": "UTF-16, which Excel and Notepad call Unicode; save it as UTF-8",
    b"%PDF": f"a PDF, not text; {_LINES}",
}


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Iterate over the lines of a UTF-8 text file, one line in memory at a time.

    A leading byte-order mark and the line ends (LF or CRLF) are removed. The file is opened when the first
    line is asked for.

    Args:
        path: text file; `.xz` and `.gz` are decompressed on the fly, any other suffix is plain text.

    Yields:
        (line number from 1, line without its end).
    """
    path = Path(path)
    for number, raw in _raw_lines(path):
        if number == 1:
            for magic, what in _NOT_TEXT.items():
                if raw.startswith(magic):
                    raise UserError(f"{path}: this is {what}")
            raw = raw.removeprefix(_BOM)
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}:{number}: not UTF-8 (byte {error.start + 1} of the line is "
                f"0x{error.object[error.start]:02x}); save the file as UTF-8"
            ) from error
        yield number, line.removesuffix("\n").removesuffix("\r")


def share_of_lines(path: str | Path, other: str | Path) -> float:
    """Return the share of a file's distinct lines, empty ones aside, that another file has too."""
    wanted = {line for _, raw in _raw_lines(Path(path)) if (line := raw.strip())}
    found = {line for _, raw in _raw_lines(Path(other)) if (line := raw.strip()) in wanted}
    return len(found) / max(len(wanted), 1)


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Iterate over lines as they are in the file, with their numbers from 1."""
    number = 0
    with _open_binary(path) as stream:
        try:
            for number, raw in enumerate(iter(lambda: stream.readline(MAX_LINE + 1), b""), start=1):
                if len(raw) > MAX_LINE:
                    raise UserError(f"{path}:{number}: the line has more than {MAX_LINE:,} bytes; break it")
                yield number, raw
        except EOFError as error:
            if path.stat().st_size == 0:
                raise _empty(path) from error
            raise UserError(
                f"{path}: the archive ends too early, after line {number}; copy or download the whole file"
            ) from error
        except (lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
            raise UserError(
                f"{path}: not a sound {path.suffix.lower()} archive (damaged after line {number}); "
                "give an intact archive, or plain text under a name without that suffix"
            ) from error
        except OSError as error:
            raise UserError(f"{path}: reading failed after line {number} ({error.strerror})") from error
    if number == 0:
        raise _empty(path)


def _empty(path: Path) -> UserError:
    return UserError(f"{path}: the file is empty; give a file with at least one line")


def _open_binary(path: Path) -> BinaryIO:
    suffix = path.suffix.lower()
    try:
        if suffix not in (".xz", ".gz"):
            return path.open("rb")
        unpack = lzma.open if suffix == ".xz" else gzip.open
        # Both classes iterate over lines in Python; a BufferedReader does it in C, twice as fast.
        return io.BufferedReader(cast(io.RawIOBase, unpack(path, "rb")), buffer_size=1 << 18)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; give the path of an existing text file") from error
    except (IsADirectoryError, NotADirectoryError) as error:
        what = "this is a folder" if path.is_dir() else "a part of this path is a file, not a folder"
        raise UserError(f"{path}: {what}; give the path of a text file") from error
    except PermissionError as error:
        raise UserError(
            f"{path}: no permission to read; make the file readable, for example with chmod u+r"
        ) from error
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be opened ({error}); give the path of a text file") from error


def read_lists(package: str, name: str) -> dict[str, frozenset[str]]:
    """Read the lists of a text file of a package: `[name]` and a remark, then the words, with blanks between them."""
    text = (importlib.resources.files(package) / name).read_text(encoding="utf-8")
    lists: dict[str, set[str]] = {}
    for line in text.splitlines():
        head = _LIST_NAME.fullmatch(line)
        if head is not None:
            words = lists.setdefault(head["name"], set())
        else:
            words.update(line.split())
    return {name: frozenset(words) for name, words in lists.items()}


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
    """Fail before the work and not after it if a file cannot be written; one that is missing is created empty."""
    write_records(path, (), "a")


def write_records(path: Path, records: Iterable[Record], mode: str = "w") -> None:
    """Write records, a line each."""
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
