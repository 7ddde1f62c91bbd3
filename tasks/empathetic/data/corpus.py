"""EmpatheticDialogues (Rashkin et al., 2019) as published: CSV files, alone or in their archive.

The CSV has no quoting: a comma inside a text is written `_comma_` and a quotation mark is an ordinary,
sometimes unbalanced, character. Python's csv module would join lines at such a mark.
"""

import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue, clean_turn, known_emotion
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS

COLUMNS = ("conv_id", "utterance_idx", "context", "prompt", "speaker_idx", "utterance", "selfeval", "tags")
SPLITS = ("train", "valid", "test")
_ARCHIVE = re.compile(r"(?P<path>.+\.(?:tar\.gz|tgz))(?::(?P<split>[^:/\\]*))?", re.IGNORECASE)
_RATINGS = re.compile(r"[\d|_\s]*")


@dataclass(frozen=True, slots=True)
class _Row:
    conversation: str
    number: int
    emotion: str
    situation: str
    person: str
    text: str


def is_archive(source: str) -> bool:
    """Return whether a data source is `….tar.gz` or `….tgz`, with or without `:split`."""
    return _ARCHIVE.fullmatch(source) is not None


def read_archive(source: str) -> list[Dialogue]:
    """Read the examples of one split of the official archive.

    Args:
        source: `path.tar.gz` (its train split) or `path.tar.gz:train|valid|test`.

    Returns:
        Every listener turn with its whole history, in file order.

    Raises:
        UserError: no such archive, split or file in it, or a line that cannot be understood.
    """
    match = _ARCHIVE.fullmatch(source)
    if match is None:
        raise UserError(f"{source}: not an archive; give a name like empatheticdialogues.tar.gz:valid")
    path, split = Path(match["path"]), "train" if match["split"] is None else match["split"]
    if split not in SPLITS:
        raise UserError(f"{path}: unknown split {split!r}; choose one of {', '.join(SPLITS)}")
    return list(_examples(_member_lines(path, f"{split}.csv"), f"{path}:{split}.csv"))


def read_csv(path: str | Path) -> list[Dialogue]:
    """Read the examples of one official CSV file, plain, `.gz` or `.xz`; otherwise like `read_archive`."""
    return list(_examples(read_lines(path), str(path)))


def _member_lines(path: Path, name: str) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with tarfile.open(path, "r:gz") as archive:
            files = [member for member in archive if member.isfile()]
            found = [member for member in files if Path(member.name).name == name]
            stream = archive.extractfile(found[0]) if found else None
            if stream is None:
                has = ", ".join(sorted(Path(member.name).name for member in files)[:5]) or "nothing"
                raise UserError(f"{path}: no {name} in this archive (it has {has}); choose another split")
            for number, raw in enumerate(stream, start=1):
                text = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                yield number, text.decode("utf-8").rstrip("\r\n")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; give the path of the EmpatheticDialogues archive") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:{name}:{number}: not UTF-8; take the archive as published") from error
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise UserError(f"{path}: not a sound .tar.gz archive ({error}); download the whole file") from error


def _examples(lines: Iterable[tuple[int, str]], where: str) -> Iterator[Dialogue]:
    """Turn CSV lines into examples: every listener turn with the turns before it."""
    finished: set[str] = set()
    rows: list[_Row] = []
    empty = True
    for number, line in lines:
        if not line.strip():
            continue
        if empty:
            empty = False
            if line.split(",")[: len(COLUMNS)] != list(COLUMNS):
                raise UserError(f"{where}:{number}: not the header of this corpus; it is {','.join(COLUMNS)}")
            continue
        try:
            row = _row(line)
            if rows and row.conversation != rows[0].conversation:
                yield from _of_conversation(rows)
                finished.add(rows[0].conversation)
                rows = []
            if row.conversation in finished:
                raise ValueError(f"conversation {row.conversation} goes on here after another one began")
            _check_order(row, rows)
        except ValueError as error:
            raise UserError(f"{where}:{number}: {error}") from error
        rows.append(row)
    if not rows:
        raise UserError(f"{where}: no utterance in this file; give a CSV of EmpatheticDialogues")
    yield from _of_conversation(rows)


def _row(line: str) -> _Row:
    fields = line.split(",")
    # Some published files have a ninth column, candidate replies, which is not needed. A bare comma in a text makes
    # nine columns too, but then words stand where the ratings (5|5|5_5|5|5) should be.
    candidates = len(fields) == len(COLUMNS) + 1 and _RATINGS.fullmatch(fields[6])
    if len(fields) != len(COLUMNS) and not candidates:
        raise ValueError(
            f"{len(fields)} fields found, {len(COLUMNS)} expected ({','.join(COLUMNS)}); "
            "a comma inside a text is written _comma_"
        )
    conversation, number, emotion, situation, person, text = fields[:6]
    if not number.strip().isdecimal():
        raise ValueError(f"utterance_idx is {number!r}; it must be a whole number")
    return _Row(
        conversation=conversation,
        number=int(number),
        emotion=known_emotion(emotion, EMOTIONS),
        situation=" ".join(_text(situation).split()),
        person=person.strip(),
        text=clean_turn(_text(text), "the utterance"),
    )


def _text(field: str) -> str:
    text = field.replace("_comma_", ",").strip()
    if text.count('"') % 2:
        text = text[1:] if text.startswith('"') else text.removesuffix('"')
    return text


def _check_order(row: _Row, earlier: list[_Row]) -> None:
    """Check that a row continues its conversation: numbered from 1, two people in turn, one emotion."""
    if row.number != len(earlier) + 1:
        raise ValueError(
            f"utterance_idx is {row.number}, but the next of conversation {row.conversation} "
            f"is {len(earlier) + 1}"
        )
    if not earlier:
        return
    expected = earlier[-2].person if len(earlier) > 1 else None
    if row.person == earlier[-1].person or (expected is not None and row.person != expected):
        raise ValueError(
            f"speaker_idx is {row.person}, so speaker and listener do not alternate; "
            + (f"{expected} is next" if expected is not None else f"it must differ from {earlier[-1].person}")
        )
    if row.emotion != earlier[0].emotion:
        raise ValueError(f"the emotion changes from {earlier[0].emotion} to {row.emotion} in a conversation")


def _of_conversation(rows: list[_Row]) -> Iterator[Dialogue]:
    texts = [row.text for row in rows]
    for position in range(1, len(texts), 2):
        yield Dialogue(texts[:position], texts[position], rows[0].emotion, rows[0].situation or None)
