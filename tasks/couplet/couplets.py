"""Couplets: the example, where it is read from, and the rule for lines that are too long."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi, normalise_line, read_as_simplified

_LOG = logging.getLogger(__name__)

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
    parsed = (parse_couplet(path, number, line) for number, line in read_lines(path))
    couplets = [couplet for couplet in parsed if couplet is not None]
    if not couplets:
        raise UserError(f"{path}: no couplet in this file; give at least one line of 上联<TAB>下联")
    return couplets


def parse_couplet(path: Path, number: int, line: str) -> Couplet | None:
    """Make a couplet of a line of a file; None for a blank one.

    Raises:
        UserError: the line is not 上联<TAB>下联.
    """
    columns = line.split("\t")
    if len(columns) != 2:
        if len(columns) == 1 and not line.strip():
            return None
        found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        raise UserError(f"{path}:{number}: {found} found; a line must be 上联<TAB>下联")
    try:
        return _couplet(*columns)
    except ValueError as error:
        raise UserError(f"{path}:{number}: {error}; a line must be 上联<TAB>下联") from error


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
        _LOG.warning("paddlenlp:%s: %d pairs left out, as a line of theirs has no hanzi", split, odd)
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
