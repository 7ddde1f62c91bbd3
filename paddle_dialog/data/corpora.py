"""Corpora as they are published: poems, dialogues and reviews, in whatever form a file has by its beginning.

Each reader yields records with their line, for messages, and raises a UserError with file, line and the forms that it
reads. What a task makes of a record, such as tokens, is the task's.
"""

from __future__ import annotations

import csv
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from paddle_dialog.data.files import Record, parse_json, read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi

logger = logging.getLogger("paddle_dialog")

POEMS = (
    "title<TAB>text or title:text a line, a poem a line, a verse a line with blank lines between poems, the JSON of "
    "chinese-poetry or CCPC, or a CSV with the columns 题目 and 内容"
)
CONVERSATIONS = (
    '{"context": [turn, …], "target": …}, {"turns": [turn, …]}, {"messages": [{"role": …, "content": …}, …]}, '
    '{"conversations": [{"from": …, "value": …}, …]} or an array of turns a line, or turns that __eou__ ends'
)
REVIEWS = (
    "label<TAB>text with label 0 or 1, or a CSV or TSV whose header names a column label and a column text, text_a, "
    "sentence or review"
)

_SIGNS = "，。！？；,.!?;"
_TITLED = re.compile(rf"[^{_SIGNS}:：]{{1,40}}[:：].*[{_SIGNS}]\s*$")
_TITLES, _BODIES = ("title", "题目", "标题", "rhythmic", "chapter"), ("paragraphs", "content", "内容", "正文")
_TURNS = ("turns", "messages", "conversations", "conversation", "dialog", "dialogue")
_ROLES, _WORDS = ("role", "from", "speaker"), ("content", "value", "text", "utterance")
_LISTENERS = {"assistant", "gpt", "chatgpt", "bot", "model"}
_LISTENERS |= {"counselor", "counsellor", "supporter", "therapist"}
_ASIDE = ("system", "tool", "function")  # roles of what nobody says
_LABELS = ("label", "labels", "sentiment", "标签", "情感")
_REVIEWS = ("text", "text_a", "sentence", "review", "content", "comment", "评论", "内容")
_LABEL_OF = {"0": 0, "negative": 0, "neg": 0, "0.0": 0, "1": 1, "positive": 1, "pos": 1, "1.0": 1}
_BETWEEN_HANZI = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef]) +| +(?=[\u3000-\u9fff\uff00-\uffef])")

Lines = Iterable[tuple[int, str]]
PoemRecord = tuple[int, str, str]  # line, title (may be empty), body
ReviewRecord = tuple[int, int, str]  # line, label (1 for good), text


def read_poems(path: Path) -> Iterator[PoemRecord]:
    """Iterate over the poems of a file, in one of the forms of `POEMS`."""
    first, lines = _begin(path)
    start = first.lstrip()
    if not start:
        return
    if start[:1] in ("[", "{"):
        for number, value in _json_values(path, lines, POEMS):
            items = value if isinstance(value, list) else [value]
            yield from (_json_poem(path, number, item) for item in items)
    elif "\t" in first or _TITLED.match(first):
        yield from _titled_poems(path, lines, "\t" if "\t" in first else ":")
    elif _column(header := _header(first, ","), _BODIES) is not None:
        title, body = _column(header, _TITLES), _column(header, _BODIES)
        assert body is not None
        for number, row in _rows(path, lines, ",", len(header)):
            yield number, "" if title is None else row[title], _joined_verses([row[body]])
    elif any(map(is_hanzi, first)):
        yield from _plain_poems(lines)
    else:
        raise UserError(
            f"{path}: no form of poems ({start[:20]!r} …); give {POEMS}; for running text set data.running_text=true"
        )


def read_conversations(path: Path) -> Iterator[tuple[int, Record]]:
    """Iterate over the dialogues of a file, in one of the forms of `CONVERSATIONS`.

    Yields:
        The line and the record: an object with `context` as it is, anything else as `{"turns": [text, …]}` with the
        object's other keys, such as `emotion`. The speaker has the first turn, and turns alternate: what one writes
        in a row is one turn, a listener's greeting is left out, and so is a conversation that nobody answers.
    """
    first, lines = _begin(path)
    if "__eou__" in first:
        for number, line in lines:
            turns = [turn.strip() for turn in line.split("__eou__") if turn.strip()]
            if turns:
                yield number, {"turns": turns}
        return
    skipped = 0
    for number, value in _json_values(path, lines, CONVERSATIONS):
        try:
            for record in _conversations(value):
                if record.get("turns") == []:
                    skipped += 1
                else:
                    yield number, record
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}; a line must be {CONVERSATIONS}") from error
    if skipped:
        logger.warning("%s: %d conversations without an answer left out", path, skipped)


def read_reviews(path: Path) -> Iterator[ReviewRecord]:
    """Iterate over the labelled reviews of a file, in one of the forms of `REVIEWS`.

    Rows of a table without a text are left out; the log has their number.
    """
    first, lines = _begin(path)
    delimiter = "\t" if "\t" in first else ","
    header = _header(first, delimiter)
    if not header:
        return
    label, text = _column(header, _LABELS), _column(header, _REVIEWS)
    if label is None and text is None and any(cell in ("0", "1") for cell in (header[0], header[-1])):
        yield from _bare_reviews(path, lines, delimiter, label_first=header[0] in ("0", "1"))
        return
    if label is None or text is None:
        missing = "label" if label is None else "text"
        raise UserError(
            f"{path}:1: {first[:40]!r} names no column of the {missing}; a line must be {REVIEWS}"
        )
    rows = _rows(path, lines, delimiter, len(header))
    whole = [(number, row) for number, row in rows if row[text].strip()]
    if len(whole) < len(rows):
        logger.warning("%s: %d rows without a text left out", path, len(rows) - len(whole))
    for number, row in whole:
        known = _LABEL_OF.get(row[label].strip().lower())
        if known is None:
            raise UserError(f"{path}:{number}: the label is {row[label][:20]!r}; it must be 0 or 1")
        yield number, known, row[text]


def _begin(path: Path) -> tuple[str, Lines]:
    """Return the first line that is not blank, and all lines from there on."""
    lines = read_lines(path)
    for number, line in lines:
        if line.strip():
            return line, chain([(number, line)], lines)
    return "", ()


def _json_values(path: Path, lines: Lines, form: str) -> Iterator[tuple[int, Any]]:
    """Iterate over the JSON values of a file: one a line, or of many lines."""
    lines = iter(lines)
    for number, line in lines:
        if not line.strip():
            continue
        try:
            yield number, parse_json(line)
        except ValueError as error:
            whole = number == 1 or line.strip() in ("[", "{")
            rest = [text for _, text in lines] if whole else []
            if not rest:
                raise UserError(f"{path}:{number}: {error}; a line must be {form}") from error
            try:
                yield from ((number, value) for value in _decoded("\n".join([line, *rest])))
            except (json.JSONDecodeError, RecursionError) as fault:
                place = fault.lineno + number - 1 if isinstance(fault, json.JSONDecodeError) else number
                raise UserError(
                    f"{path}:{place}: {error if place == number else fault}; give {form}"
                ) from fault


def _decoded(text: str) -> Iterator[Any]:
    decoder, place, end = json.JSONDecoder(), 0, len(text.rstrip())
    while place < end:
        value, place = decoder.raw_decode(text, re.compile(r"\s*").match(text, place).end())  # type: ignore[union-attr]
        yield value


def _json_poem(path: Path, number: int, item: Any) -> PoemRecord:
    body = next((item[key] for key in _BODIES if key in item), None) if isinstance(item, dict) else None
    verses = [body] if isinstance(body, str) else body
    if not isinstance(verses, list) or not all(isinstance(verse, str) for verse in verses):
        raise UserError(f"{path}:{number}: {_shown(item)} is no poem; it must have 'paragraphs' or 'content'")
    title = next((item[key] for key in _TITLES if isinstance(item.get(key), str)), "")
    return number, title, _joined_verses(verses)


def _joined_verses(verses: Sequence[str]) -> str:
    """Return verses as one text; bare ones, such as CCPC's between |, with ， and 。 in turn."""
    verses = [verse.strip() for text in verses for verse in re.split(r"[|\n]", text) if verse.strip()]
    if len(verses) > 1 and not any(verse[-1] in _SIGNS for verse in verses):
        verses = [verse + "，。"[place % 2] for place, verse in enumerate(verses)]
    return "".join(verses)


def _titled_poems(path: Path, lines: Lines, separator: str) -> Iterator[PoemRecord]:
    form = "title<TAB>text" if separator == "\t" else "title:text"
    for number, line in lines:
        if not line.strip():
            continue
        columns = line.split("\t") if separator == "\t" else re.split("[:：]", line, maxsplit=1)
        if len(columns) != 2:
            found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            raise UserError(f"{path}:{number}: {found} found; a line must be {form}, as the first line is")
        if not columns[1].strip():
            raise UserError(f"{path}:{number}: the poem is empty; a line must be {form}")
        yield number, columns[0], columns[1]


def _plain_poems(lines: Lines) -> Iterator[PoemRecord]:
    """Iterate over poems of a line each, or of a verse a line with blank lines between the poems."""
    blocks = [list(block) for blank, block in groupby(lines, lambda line: not line[1].strip()) if not blank]
    if len(blocks) == 1 or all(len(block) == 1 for block in blocks):
        blocks = [[line] for block in blocks for line in block]
    for block in blocks:
        number, first = block[0]
        signed = [any(sign in text for sign in _SIGNS) for _, text in block[:2]]
        titled = signed == [False, True]
        yield number, first if titled else "", _joined_verses([text for _, text in block[titled:]])


def _conversations(value: Any) -> Iterator[Record]:
    """Iterate over the conversations of a JSON value; one without an answer has no turns."""
    if isinstance(value, dict):
        key = next((key for key in _TURNS if key in value), None)
        turns = value.get(key or "")
        if "context" in value or key is None or (key == "turns" and not _are_messages(turns)):
            yield value
        else:
            yield {**value, "turns": _turns(turns)}
    elif _are_texts(value):
        yield {"turns": [_BETWEEN_HANZI.sub("", turn) for turn in value] if len(value) > 1 else []}
    elif _are_messages(value):
        yield {"turns": _turns(value)}
    elif isinstance(value, list) and value and all(isinstance(item, list | dict) for item in value):
        for item in value:
            yield from _conversations(item)
    else:
        raise ValueError(f"a JSON {type(value).__name__} found")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(turn, str) for turn in value)


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(turn, dict) and {*turn} & {*_WORDS} for turn in value)


def _turns(messages: Any) -> list[str]:
    """Return the turns of messages, or of texts, the speaker first; those of one who writes in a row are one."""
    if _are_texts(messages):
        return list(messages)
    if not _are_messages(messages):
        raise ValueError(f"{_shown(messages)} are no messages with a role and a text")
    said: list[tuple[str, str]] = []
    for place, message in enumerate(messages, start=1):
        role = next((message[key] for key in _ROLES if key in message), None)
        text = next(message[key] for key in _WORDS if key in message)
        if not isinstance(role, str) or not isinstance(text, str):
            raise ValueError(f"message {place} has no role or no text that is a string")
        if role.lower() not in _ASIDE and text.strip():
            said.append((role, text.strip()))
    speakers = [(role, _joined_turn([text for _, text in row])) for role, row in groupby(said, itemgetter(0))]
    names = sorted({role for role, _ in speakers})
    if len(names) > 2:
        raise ValueError(f"more than two people speak ({', '.join(names)}), not a speaker and a listener")
    if speakers and speakers[0][0].lower() in _LISTENERS:
        speakers = speakers[1:]
    return [text for _, text in speakers] if len(speakers) > 1 else []


def _joined_turn(texts: Sequence[str]) -> str:
    return "".join(("" if not n or is_hanzi(text[0]) else " ") + text for n, text in enumerate(texts))


def _header(first: str, delimiter: str) -> list[str]:
    return [cell.strip().lower() for cell in next(csv.reader([first], delimiter=delimiter), [])]


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _rows(path: Path, lines: Lines, delimiter: str, width: int) -> list[tuple[int, list[str]]]:
    """Return the rows of a table below its header, blank ones left out.

    A TSV whose quotes do not fit together has none: GLUE's are written so.
    """
    kept = list(lines)
    if delimiter == "\t":
        with suppress(UserError):
            return _parsed(path, kept, delimiter, width, csv.QUOTE_MINIMAL)
    return _parsed(path, kept, delimiter, width, csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL)


def _parsed(
    path: Path, lines: Lines, delimiter: str, width: int, quoting: Any
) -> list[tuple[int, list[str]]]:
    numbers = [number for number, _ in lines]
    reader = csv.reader((f"{line}\n" for _, line in lines), delimiter=delimiter, quoting=quoting, strict=True)
    start, found = 0, []
    try:
        for row in reader:
            if row and len(row) != width:
                where = f"{path}:{numbers[start]}"
                raise UserError(f"{where}: {len(row)} columns found, and the header has {width}")
            found += [(numbers[start], row)] if row else []
            start = reader.line_num
    except csv.Error as error:
        where = f"{path}:{numbers[min(start, len(numbers) - 1)]}"
        raise UserError(f"{where}: not a row of a table ({error}); double the quotes in a text") from error
    return found[1:]


def _bare_reviews(path: Path, lines: Lines, delimiter: str, label_first: bool) -> Iterator[ReviewRecord]:
    """Iterate over the lines of a table without a header, label and text; quotes around a text are left out."""
    for number, line in lines:
        if not line.strip():
            continue
        label, mark, text = line.partition(delimiter) if label_first else line.rpartition(delimiter)[::-1]
        if not mark or label.strip() not in ("0", "1"):
            raise UserError(f"{path}:{number}: {line[:20]!r}…; a line must be {REVIEWS}")
        if not text.strip():
            raise UserError(f"{path}:{number}: the text is empty; a line must be {REVIEWS}")
        if len(text) > 1 and text[0] == text[-1] == '"' and text[1:-1].count('"') == 2 * text.count('""'):
            text = text[1:-1].replace('""', '"')
        yield number, int(label), text


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:40]
