"""Lines of UTF-8 text files, plain or compressed, with every failure reported as a UserError."""

import gzip
import importlib.resources
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from paddle_dialog.errors import UserError

MANIFEST = "bundle.json"  # the file that makes a folder a bundle
LONGEST_LINE = 1 << 26  # bytes; an archive of some kilobytes can unpack to gigabytes without a line's end
_BOM = b"\xef\xbb\xbf"
_LIST_NAME = re.compile(r"\[(?P<name>[^]]+)\].*")


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
    """Return the share of a file's lines, empty ones aside, that another file has too."""
    wanted = {line for _, raw in _raw_lines(Path(path)) if (line := raw.strip())}
    found = {line for _, raw in _raw_lines(Path(other)) if (line := raw.strip()) in wanted}
    return len(found) / max(len(wanted), 1)


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Iterate over lines as they are in the file, with their numbers from 1."""
    number = 0
    with _open_binary(path) as stream:
        try:
            for number, raw in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), b""), start=1):
                if len(raw) > LONGEST_LINE:
                    raise UserError(
                        f"{path}:{number}: the line has more than {LONGEST_LINE:,} bytes; break it"
                    )
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


def _buffered(stream: lzma.LZMAFile | gzip.GzipFile) -> BinaryIO:
    # Both classes iterate over lines in Python; a BufferedReader does it in C, twice as fast.
    return io.BufferedReader(cast(io.RawIOBase, stream), buffer_size=1 << 18)


def _open_binary(path: Path) -> BinaryIO:
    suffix = path.suffix.lower()
    try:
        if suffix == ".xz":
            return _buffered(lzma.open(path, "rb"))
        if suffix == ".gz":
            return _buffered(gzip.open(path, "rb"))
        return path.open("rb")
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
