"""Couplets: reading them, and an index of a corpus that answers which of its couplets is nearest to a line.

The index holds the couplets themselves: characters as 16-bit numbers, the frequent ones low, couplets of one length
sorted and compressed together. A length is unpacked when it is first asked for, and compared as a whole: for 340,000
lines of seven characters that takes a millisecond or two, and is exact.
"""

from __future__ import annotations

import logging
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.folder import file_errors, unpack_xz
from paddle_dialog.data.files import Record, read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi, normalise_line, read_as_simplified

logger = logging.getLogger("paddle_dialog")

# Lines with hanzi that `normalise_line` would not change: nearly all of a corpus. Checking this first saves about two
# seconds on 720,000 pairs.
_USUAL_LINE = re.compile("[，。！？；：、]*[\u4e00-\u9fff][，。！？；：、\u4e00-\u9fff]*")
_SPLITS = ("train", "dev", "test")  # of PaddleNLP's corpus
_SEPARATOR = "\x02"  # between its characters


@dataclass(frozen=True, slots=True)
class Couplet:
    """One pair of lines: 上联 (`first`) and 下联 (`second`)."""

    first: str
    second: str


def read_couplets(source: str) -> list[Couplet]:
    """Read all couplets of a source.

    Args:
        source: `sample` (a few couplets that come with the package), the path of a UTF-8 file of
            上联<TAB>下联 lines (`.xz` and `.gz` are read as they are; blank lines are skipped), or
            `paddlenlp[:train|dev|test]` (PaddleNLP's couplet corpus, by default its train split).

    Returns:
        The couplets in the order of the source, their lines in the form of `normalise_line`.

    Raises:
        UserError: the source cannot be read, or a line of it is not a couplet (named by file and number).
    """
    if source == "sample":
        return _read_tsv(Path(__file__).with_name("sample.tsv"))
    if source == "paddlenlp" or source.startswith("paddlenlp:"):
        return _read_paddlenlp(source.partition(":")[2] or "train")
    return _read_tsv(Path(source))


def _read_tsv(path: Path) -> list[Couplet]:
    form, couplets = "a line must be 上联<TAB>下联", list[Couplet]()
    for number, line in read_lines(path):
        columns = line.split("\t")
        if not line.strip() and len(columns) == 1:
            continue
        if len(columns) != 2:
            found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            raise UserError(f"{path}:{number}: {found} found; {form}")
        try:
            couplets.append(_couplet(*columns))
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}; {form}") from error
    if not couplets:
        raise UserError(f"{path}: no couplet in this file; give at least one line of 上联<TAB>下联")
    return couplets


def _read_paddlenlp(split: str) -> list[Couplet]:
    """Read one split of the corpus that PaddleNLP downloads, once, into `$PPNLP_HOME/datasets`."""
    from tarfile import TarError

    if split not in _SPLITS:
        raise UserError(f"paddlenlp:{split}: no such split; it must be one of {', '.join(_SPLITS)}")
    try:
        from paddlenlp.datasets import load_dataset
    except Exception as error:  # its long import chain fails in more ways than ImportError
        raise UserError(
            f"paddlenlp:{split}: PaddleNLP cannot be imported ({_line(error)}); install the "
            "extra train on Python 3.10 to 3.12, or give a TSV file of 上联<TAB>下联 instead"
        ) from error
    couplets, odd = [], 0
    try:
        # Lazy; otherwise all pairs would be held as dictionaries first.
        for example in load_dataset("couplet", splits=split, lazy=True):
            lines = (example[name].replace(_SEPARATOR, "") for name in ("first", "second"))
            try:
                couplets.append(_couplet(*lines))
            except ValueError:  # not in a file that the user could repair
                odd += 1
    # No connection, wrong checksum, broken archive, full disk.
    except (RuntimeError, OSError, ValueError, EOFError, TarError) as error:
        raise UserError(
            f"paddlenlp:{split}: PaddleNLP could not fetch or read its couplets ({_line(error)}); check the network "
            "and PPNLP_HOME, or give a TSV file of 上联<TAB>下联 instead"
        ) from error
    if odd:
        logger.warning("paddlenlp:%s: %d pairs left out, as a line of theirs has no hanzi", split, odd)
    return couplets


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _couplet(first: str, second: str) -> Couplet:
    first, second = read_as_simplified(first), read_as_simplified(second)
    if not (_USUAL_LINE.fullmatch(first) and _USUAL_LINE.fullmatch(second)):
        first, second = normalise_line(first), normalise_line(second)
        for name, line in (("first line (上联)", first), ("second line (下联)", second)):
            if not line:
                raise ValueError(f"the {name} is empty")
            if not any(map(is_hanzi, line)):
                raise ValueError(f"the {name} has no hanzi: {line[:40]!r}")
    return Couplet(first, second)


def limit_length(couplets: Sequence[Couplet], max_length: int) -> tuple[list[Couplet], str]:
    """Skip couplets with a line of more than `max_length` characters; return the others, and a note for the log."""
    kept = [one for one in couplets if max(len(one.first), len(one.second)) <= max_length]
    if couplets and not kept:
        raise UserError(
            f"max_length: every couplet has a line of more than {max_length} characters; set it higher"
        )
    unequal = sum(len(couplet.first) != len(couplet.second) for couplet in couplets)
    return kept, (
        f"{len(couplets)} couplets: {len(kept)} kept, {len(couplets) - len(kept)} skipped as too long, "
        f"{unequal} with lines of unequal length"
    )


COUPLET_INDEX = "couplets.safetensors"  # in a bundle
CHARACTERS, PAIRS = "characters", "pairs."  # names in it; the length of the lines follows the second
NUMBER = np.dtype("<u2")  # of a character
ABSENT = np.iinfo(NUMBER).max  # a character that no couplet has

MAX_UNPACKED = 1 << 26  # bytes of the lines of one length
MAX_BYTES = 7_000_000  # lines of up to 11 characters; of longer answers hardly one is in the corpus

Line = Literal["first", "second"]
BOTH: tuple[Line, ...] = ("first", "second")


@dataclass(frozen=True)
class Known:
    """The couplet of a corpus that is nearest to another."""

    first: str  # 上联
    second: str  # 下联
    # Positions at which the nearer of the lines that were compared differs; 0 if it is there whole.
    distance: int

    def as_dict(self) -> Record:
        """Return the couplet as the command line prints it."""
        return asdict(self)


class CoupletIndex:
    """Couplets by the length of their lines.

    Args:
        packed: length → the compressed numbers of N couplets, 上联 and 下联 one after the other, [N, 2, length].
    """

    def __init__(self, characters: str, packed: Mapping[int, bytes], where: str) -> None:
        self._characters, self._packed, self._where = characters, packed, where
        self._numbers = {character: number for number, character in enumerate(characters)}
        self._unpacked: dict[int, np.ndarray] = {}

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> CoupletIndex:
        """Read what `index_bytes` made."""
        with file_errors(where, "index of couplets", "make it anew"):
            tensors = load(content)
            characters = tensors.pop(CHARACTERS).tobytes().decode("utf-8")
            packed = {int(name.removeprefix(PAIRS)): array.tobytes() for name, array in tensors.items()}
        return cls(characters, packed, where)

    @property
    def lengths(self) -> list[int]:
        """The lengths of line it holds."""
        return sorted(self._packed)

    def unpack(self) -> None:
        """Unpack all lengths now, so that the first questions are quick."""
        for length in self.lengths:
            self._lines(length)

    def nearest(self, first: str, second: str, compared: Sequence[Line] = BOTH) -> Known | None:
        """Return the couplet with the line nearest to one of a couplet's.

        Of equally near ones that is taken whose other line is nearer.
        """
        given = {"first": normalise_line(first), "second": normalise_line(second)}
        found: list[tuple[int, int, int, int]] = []  # distances, row, length
        for name in compared:
            length = len(given[name])
            if length not in self._packed:
                continue
            lines = self._lines(length)  # [2, length, N]
            equal = self._equal(lines, name, given[name])  # [N]
            rows = np.flatnonzero(equal == equal.max())
            other: Line = "first" if name == "second" else "second"
            fitting = self._equal(lines[:, :, rows], other, given[other])
            best = int(fitting.argmax())
            found.append((length - int(equal.max()), length - int(fitting[best]), int(rows[best]), length))
        if not found:
            return None
        distance, _, row, length = min(found)
        above, below = (self._text(line) for line in self._lines(length)[:, :, row])
        return Known(above, below, distance)

    def _equal(self, lines: np.ndarray, name: Line, text: str) -> np.ndarray:
        """Return how many positions of each line [2, length, N] hold what a text has there, [N]."""
        equal = np.zeros(lines.shape[2], dtype=np.uint8)
        for column, character in zip(lines[BOTH.index(name)], text, strict=False):
            equal += column == self._numbers.get(character, ABSENT)
        return equal

    def _lines(self, length: int) -> np.ndarray:
        """Return the numbers of both lines of all couplets of a length, [2, length, N]."""
        if length not in self._unpacked:
            try:
                numbers = np.frombuffer(unpack_xz(self._packed[length], MAX_UNPACKED), NUMBER)
                rows = numbers.reshape(-1, 2, length)  # [N, 2, length]
                if len(rows) == 0 or rows.max() >= len(self._characters):
                    raise ValueError("its characters are not in its table")
            except (lzma.LZMAError, ValueError) as error:
                raise UserError(
                    f"{self._where}: its index of couplets is damaged ({error}); make it anew"
                ) from error
            self._unpacked[length] = np.ascontiguousarray(rows.transpose(1, 2, 0))
        return self._unpacked[length]

    def _text(self, numbers: np.ndarray) -> str:
        return "".join(self._characters[number] for number in numbers.tolist())


def index_bytes(couplets: Iterable[Couplet], most_bytes: int = MAX_BYTES) -> bytes:
    """Return the file of an index that holds the couplets with the shortest lines, as many lengths as fit.

    Every couplet once; those whose lines differ in length are left out.
    """
    by_length: dict[int, set[tuple[str, str]]] = {}
    for couplet in couplets:
        if len(couplet.first) == len(couplet.second):
            by_length.setdefault(len(couplet.first), set()).add((couplet.first, couplet.second))
    counts = Counter(
        character for pairs in by_length.values() for pair in pairs for line in pair for character in line
    )
    characters = "".join(character for character, _ in counts.most_common())
    if len(characters) >= ABSENT:
        raise UserError(
            f"the couplets have {len(characters):,} different characters, and {ABSENT - 1:,} are the most"
        )
    numbers = {character: number for number, character in enumerate(characters)}
    tensors = {CHARACTERS: np.frombuffer(characters.encode("utf-8"), np.uint8)}
    content = b""
    for length in sorted(by_length):
        tensors[f"{PAIRS}{length}"] = np.frombuffer(_packed(sorted(by_length[length]), numbers), np.uint8)
        longer = save(tensors)
        if len(longer) > most_bytes:
            break
        content = longer
        logger.info("index: lines of %d characters, %s bytes so far", length, f"{len(content):,}")
    if not content:
        raise UserError(f"the index of the shortest couplets alone is larger than {most_bytes:,} bytes")
    return content


def _packed(pairs: list[tuple[str, str]], numbers: dict[str, int]) -> bytes:
    """Compress couplets of one length; every other byte is the high one of a number."""
    values = [numbers[character] for pair in pairs for line in pair for character in line]
    data = np.array(values, NUMBER).tobytes()
    size = max(len(data), 4096)
    best = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}
    filters = [{**best, "dict_size": size, "lc": 0, "lp": 1, "pb": 1}]
    return lzma.compress(data, check=lzma.CHECK_CRC32, filters=filters)
