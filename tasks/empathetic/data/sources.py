"""Dialogue examples from any source: the embedded sample, JSONL files, the official corpus."""

import importlib.resources
import json
import re
from pathlib import Path
from typing import Any

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from tasks.empathetic.data.corpus import is_archive, read_archive, read_csv
from tasks.empathetic.data.dialogue import (
    Dialogue,
    check_alternation,
    check_characters,
    clean_turn,
    known_emotion,
)

__all__ = ["Dialogue", "parse_context", "parse_dialogue", "read_dialogues"]

_SHAPE = '{"context": [turn, …], "target": …, "emotion": …, "situation": …}'
_CONVERSATION = re.compile(r'\s*\{.*"context"\s*:', re.DOTALL)
SHIPPED = ("sample", "small_talk")  # files beside this one
_CSV = (".csv", ".csv.xz", ".csv.gz")


def read_dialogues(source: str) -> list[Dialogue]:
    """Read all examples of a source.

    Args:
        source: `sample` or `small_talk` (dialogues written for this project), the official archive
            `….tar.gz` (its train split) or `….tar.gz:train|valid|test`, one of its `.csv` files, or a file of
            any other name with one JSON object a line (see `parse_dialogue`). CSV and JSONL may end in `.xz`
            or `.gz`.

    Returns:
        The examples in the order of the source.

    Raises:
        UserError: the source cannot be read, or a line of it is not an example (named by file and number).
    """
    if source in SHIPPED:
        with importlib.resources.as_file(
            importlib.resources.files("tasks.empathetic") / f"{source}.jsonl"
        ) as path:
            return _read_jsonl(path)
    if is_archive(source):
        return read_archive(source)
    if source.lower().endswith(_CSV):
        return read_csv(source)
    return _read_jsonl(Path(source))


def parse_dialogue(line: str) -> Dialogue:
    """Read one line of a dialogue file.

    Args:
        line: a JSON object with `context` (a list of turns, speaker first) and `target`, and if known
            `emotion` and `situation`. Other keys, such as an id, are ignored.

    Raises:
        ValueError: the line is not such an object; the message says what would be right.
    """
    try:
        record = _parse_json(line)
    except ValueError as error:
        raise ValueError(f"{error}; a line must be {_SHAPE}") from error
    if not isinstance(record, dict):
        raise ValueError(f"a JSON {type(record).__name__} found; a line must be {_SHAPE}")
    for key in ("context", "target"):
        if key not in record:
            raise ValueError(f"key {key!r} is missing; a line must be {_SHAPE}")
    turns = record["context"]
    if not isinstance(turns, list) or not turns:
        raise ValueError("'context' must be a list of at least one turn")
    context = [
        clean_turn(_string(turn, f"turn {number} of the context"), f"turn {number} of the context")
        for number, turn in enumerate(turns, start=1)
    ]
    check_alternation(context)
    emotion, situation = record.get("emotion"), record.get("situation")
    return Dialogue(
        context=context,
        target=clean_turn(_string(record["target"], "'target'"), "'target'"),
        emotion=None if emotion is None else known_emotion(_string(emotion, "'emotion'")),
        situation=None if situation is None else " ".join(_string(situation, "'situation'").split()) or None,
    )


def parse_context(text: str) -> list[str]:
    """Read a user's input.

    Args:
        text: a single turn, or a conversation as `{"context": [turn, …]}`; other keys, such as those of a
            dialogue example, are ignored.

    Raises:
        ValueError: it is meant as a conversation, but the JSON is malformed or `context` is not a list of strings.
    """
    if not _CONVERSATION.match(text):
        return [text]
    try:
        record = _parse_json(text)
    except ValueError as error:
        raise ValueError(f'{error}; give a turn as text, or {{"context": [turn, …]}}') from error
    turns = record.get("context")
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise ValueError("a JSON object whose context must be a list of turns, each a text in quotes")
    return turns


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"broken JSON at column {error.colno} ({error.msg})") from error
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    except ValueError as error:  # Python's limit on the digits of a number
        raise ValueError("JSON with a number of thousands of digits") from error


def _string(value: Any, role: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{role} is {json.dumps(value, ensure_ascii=False)[:40]}; it must be a string")
    check_characters(value, role)
    return value


def _read_jsonl(path: Path) -> list[Dialogue]:
    dialogues = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            dialogues.append(parse_dialogue(line))
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}") from error
    if not dialogues:
        raise UserError(f"{path}: no dialogue in this file; a line must be {_SHAPE}")
    return dialogues
