"""Dialogue examples from any source: the embedded sample, JSONL files, the official corpus."""

import importlib.resources
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paddle_dialog.data.files import read_lines
from paddle_dialog.data.records import parse_json
from paddle_dialog.errors import UserError
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.corpus import is_archive, read_archive, read_csv
from tasks.empathetic.data.cutting import with_short_replies
from tasks.empathetic.data.dialogue import (
    Dialogue,
    check_alternation,
    check_characters,
    clean_turn,
    known_emotion,
)
from tasks.empathetic.data.labelled_turns import labelled_turns
from tasks.empathetic.emotion.labels import EMOTIONS, EMOTIONS_OF

__all__ = [
    "Dialogue",
    "parse_context",
    "parse_dialogues",
    "read_configured",
    "read_dialogues",
]

_SHAPE = '{"context": [turn, …], "target": …, "emotion": …, "situation": …}'
_CONVERSATION = re.compile(r'\s*\{.*"context"\s*:', re.DOTALL)
SERVING = ("small_talk", "everyday")  # whose replies serve in any conversation
SHIPPED = ("sample", *SERVING)  # files of the task's folder
_FILES = {"en": "{}.jsonl", "zh": "{}_zh.jsonl"}  # by language
_CSV = (".csv", ".csv.xz", ".csv.gz")


def read_configured(config: EmpatheticConfig, source: str) -> list[Dialogue]:
    """Read all examples of a source as a recipe wants them; see `read_dialogues`."""
    return read_dialogues(source, config.language, config.data.reply_characters)


def read_dialogues(source: str, language: str = "en", reply_characters: int = 0) -> list[Dialogue]:
    """Read all examples of a source.

    Args:
        source: `sample`, `small_talk` or `everyday` (dialogues written for this project; `everyday`, things that
            happen and what a listener says to them), the official archive `….tar.gz` (its train split) or
            `….tar.gz:train|valid|test`, one of its `.csv` files, or a file of
            any other name with one JSON object a line (see `parse_dialogues`). CSV and JSONL may end in `.xz`
            or `.gz`.
        language: whose shipped dialogues and emotions are meant.
        reply_characters: what the listener's turns are cut to, see `shortened`; 0 cuts none.

    Returns:
        The examples in the order of the source.

    Raises:
        UserError: the source cannot be read, or a line of it is not an example (named by file and number).
    """
    if source in SHIPPED:
        with importlib.resources.as_file(
            importlib.resources.files("tasks.empathetic") / _FILES[language].format(source)
        ) as path:
            return _read_jsonl(path, EMOTIONS_OF[language], reply_characters)
    if is_archive(source):
        return read_archive(source)
    if source.lower().endswith(_CSV):
        return read_csv(source)
    return _read_jsonl(Path(source), EMOTIONS_OF[language], reply_characters)


def parse_dialogues(
    line: str, emotions: Sequence[str] = EMOTIONS, reply_characters: int = 0
) -> Iterator[Dialogue]:
    """Read one line of a dialogue file, an example or a whole conversation.

    Args:
        line: a JSON object with `context` (a list of turns, speaker first) and `target`, and if known `emotion`
            and `situation`; the target may be null where there is an emotion, which alone is learned then. Or one
            with `turns`, speaker first, of which every listener's turn is an example, and if known `emotion`, the
            speaker's throughout; or with `emotions` and `speakers`, see `labelled_turns`. Other keys are ignored.
        emotions: the labels that are known.
        reply_characters: what the listener's turns are cut to, see `shortened`; 0 cuts none.

    Raises:
        ValueError: the line is neither; the message says what would be right.
    """
    record = _record(line)
    if "turns" not in record or "context" in record:
        example = _example(record, emotions)
        turns = with_short_replies([*example.context, example.target], reply_characters)
        yield replace(example, context=turns[:-1], target=turns[-1])
        return
    turns, label = record["turns"], record.get("emotion")
    if not isinstance(turns, list) or len(turns) < 2:
        raise ValueError("'turns' must be a list of at least two turns")
    turns = _cleaned(turns, "turn {}")
    if "emotions" in record:
        labels, speakers = record["emotions"], record.get("speakers")
        if not isinstance(labels, list) or not isinstance(speakers, list):
            raise ValueError(
                "'emotions' needs a list of labels, and beside it 'speakers', one of each a turn"
            )
        yield from labelled_turns(
            turns, [_string(one, "a label of 'emotions'") for one in labels], speakers, emotions
        )
        return
    turns = with_short_replies(turns, reply_characters)
    emotion = None if label is None else known_emotion(_string(label, "'emotion'"), emotions)
    for place in range(1, len(turns), 2):
        yield Dialogue(turns[:place], turns[place], emotion)


def _record(line: str) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except ValueError as error:
        raise ValueError(f"{error}; a line must be {_SHAPE}") from error
    if not isinstance(record, dict):
        raise ValueError(f"a JSON {type(record).__name__} found; a line must be {_SHAPE}")
    return record


def _example(record: dict[str, Any], emotions: Sequence[str]) -> Dialogue:
    for key in ("context", "target"):
        if key not in record:
            raise ValueError(f"key {key!r} is missing; a line must be {_SHAPE}")
    turns = record["context"]
    if not isinstance(turns, list) or not turns:
        raise ValueError("'context' must be a list of at least one turn")
    context = _cleaned(turns, "turn {} of the context")
    check_alternation(context)
    emotion, situation = record.get("emotion"), record.get("situation")
    target = record["target"]
    return Dialogue(
        context=context,
        target=""
        if target is None and emotion is not None
        else clean_turn(_string(target, "'target'"), "'target'"),
        emotion=None if emotion is None else known_emotion(_string(emotion, "'emotion'"), emotions),
        situation=None if situation is None else " ".join(_string(situation, "'situation'").split()) or None,
    )


def _cleaned(turns: Sequence[Any], role: str) -> list[str]:
    roles = [role.format(number) for number in range(1, len(turns) + 1)]
    return [clean_turn(_string(turn, own), own) for turn, own in zip(turns, roles, strict=True)]


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
        record = parse_json(text)
    except ValueError as error:
        raise ValueError(f'{error}; give a turn as text, or {{"context": [turn, …]}}') from error
    turns = record.get("context")
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise ValueError("a JSON object whose context must be a list of turns, each a text in quotes")
    return turns


def _string(value: Any, role: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{role} is {json.dumps(value, ensure_ascii=False)[:40]}; it must be a string")
    check_characters(value, role)
    return value


def _read_jsonl(path: Path, emotions: Sequence[str], reply_characters: int) -> list[Dialogue]:
    dialogues: list[Dialogue] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            dialogues += parse_dialogues(line, emotions, reply_characters)
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}") from error
    if not dialogues:
        raise UserError(f"{path}: no dialogue in this file; a line must be {_SHAPE}")
    return dialogues
