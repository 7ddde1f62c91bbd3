"""Dialogues from any source: what ships, files of JSON lines, the official corpus, plain conversations."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from paddle_dialog.data.files import read_lines
from paddle_dialog.data.records import Record, parse_json, read_records
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.corpus import is_archive, read_archive, read_csv
from paddle_dialog.tasks.empathetic.data.dialogue import (
    Dialogue,
    check_alternation,
    check_characters,
    clean_turn,
    known_emotion,
)
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, EMOTIONS_OF
from paddle_dialog.tasks.empathetic.data.language import ENGLISH, Language

LONGEST_TURN = 60  # characters after which the lines of one speaker begin another turn
STOCK = 12  # characters up to which a first sentence is often a mere formula
OVER = 1.5  # how much a single sentence may exceed the limit before it is cut inside
_REPEATED = 2  # turns of a piece that the next one repeats first; even, so that the speaker begins
_DIALOGUE = '{"context": [turn, …], "target": …, "emotion": …, "situation": …}'
_CONVERSATION = '{"turns": [turn, turn, …]}'
_SENTENCE = re.compile(r".*?(?:[。！？!?…]+[”’」』）)\"]*|$)", re.DOTALL)
_CLAUSE = re.compile(r"[，,；;：:、]")
SHIPPED = ("sample", "small_talk")  # files of the task's folder
_FILES = {"en": "{}.jsonl", "zh": "{}_zh.jsonl"}  # by language
_CSV = (".csv", ".csv.xz", ".csv.gz")


def read_configured(config: EmpatheticConfig, source: str) -> list[Dialogue]:
    """Read all examples of a source as a recipe wants them; see `read_dialogues`."""
    return read_dialogues(source, config.language, config.data.reply_characters)


def read_dialogues(source: str, language: str = "en", reply_characters: int = 0) -> list[Dialogue]:
    """Read all examples of a source.

    Args:
        source: `sample` or `small_talk` (dialogues written for this project), the official archive `….tar.gz` (its
            train split) or `….tar.gz:train|valid|test`, one of its `.csv` files, or a file of any other name with one
            JSON object a line (see `parse_dialogues`). CSV and JSONL may end in `.xz` or `.gz`.
        language: whose shipped dialogues and emotions are meant.
        reply_characters: what the listener's turns are cut to, see `shortened`; 0 cuts none.

    Returns:
        The examples in the order of the source.

    Raises:
        UserError: the source cannot be read, or a line of it is not an example (named by file and number).
    """
    if source in SHIPPED:
        file = importlib.resources.files("paddle_dialog.tasks.empathetic") / _FILES[language].format(source)
        with importlib.resources.as_file(file) as path:
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
            speaker's throughout; or with `emotions` and `speakers`, as CPED has them, which
            teaches the emotion of each turn. Other keys are ignored.
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
        labels = [_string(name, "a label of 'emotions'") for name in labels]
        yield from _labelled_turns(turns, labels, speakers, emotions)
        return
    turns = with_short_replies(turns, reply_characters)
    emotion = None if label is None else known_emotion(_string(label, "'emotion'"), emotions)
    for place in range(1, len(turns), 2):
        yield Dialogue(turns[:place], turns[place], emotion)


def _record(line: str) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except ValueError as error:
        raise ValueError(f"{error}; a line must be {_DIALOGUE}") from error
    if not isinstance(record, dict):
        raise ValueError(f"a JSON {type(record).__name__} found; a line must be {_DIALOGUE}")
    return record


def _example(record: dict[str, Any], emotions: Sequence[str]) -> Dialogue:
    for key in ("context", "target"):
        if key not in record:
            raise ValueError(f"key {key!r} is missing; a line must be {_DIALOGUE}")
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
    return [clean_turn(_string(turn, name), name) for turn, name in zip(turns, roles, strict=True)]


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
        raise UserError(f"{path}: no dialogue in this file; a line must be {_DIALOGUE}")
    return dialogues


def _labelled_turns(
    turns: Sequence[str], labels: Sequence[str], speakers: Sequence[object], emotions: Sequence[str]
) -> Iterator[Dialogue]:
    """Iterate over the turns of a conversation as examples of their emotion, without a reply.

    Lines that one speaker says one after the other with the same emotion are one turn, joined by commas.

    Raises:
        ValueError: a label is unknown, or the numbers differ.
    """
    if not len(turns) == len(labels) == len(speakers):
        raise ValueError(
            f"{len(turns)} turns have {len(labels)} emotions and {len(speakers)} speakers; give one of each a turn"
        )
    known = [known_emotion(label, emotions) for label in labels]
    for (_, emotion), group in groupby(zip(turns, speakers, known, strict=True), lambda line: line[1:]):
        said = ""
        for line, *_ in group:
            if len(said) >= LONGEST_TURN:
                yield Dialogue([f"{said}。"], "", emotion)
                said = ""
            said = f"{said}，{line}" if said else line
        yield Dialogue([f"{said}。"], "", emotion)


def read_conversations(
    source: str, max_tokens: int, language: Language = ENGLISH, reply_characters: int = 0
) -> list[Dialogue]:
    """Read conversations and cut them into pieces that a model can take.

    Args:
        source: file of JSON lines, plain, `.gz` or `.xz`; keys other than `turns` are ignored.
        max_tokens: of a piece's context, a mark before each turn counted. A longer conversation is several pieces,
            each of which begins with the last turns of the one before.
        reply_characters: what every second turn is cut to, see `shortened`; 0 cuts none.

    Returns:
        Each piece as an example: its last turn is the target, all others are the context.

    Raises:
        UserError: the file cannot be read, or a line is not a conversation of two turns or more.
    """
    pieces: list[Dialogue] = []
    for turns in read_turns(source, reply_characters):
        sizes = [len(language.tokens_of(turn)) + 1 for turn in turns]
        pieces += _pieces(turns, sizes, max_tokens)
    if not pieces:
        raise UserError(f"{source}: no conversation in this file; a line must be {_CONVERSATION}")
    return pieces


def read_turns(source: str, reply_characters: int = 0) -> Iterator[list[str]]:
    """Iterate over the turns of each conversation of a file; arguments and errors as for `read_conversations`."""
    return read_records(
        source, lambda record: with_short_replies(_turns(record), reply_characters), _CONVERSATION
    )


def _turns(record: Record) -> list[str]:
    turns = record.get("turns")
    if not isinstance(turns, list) or len(turns) < 2 or not all(isinstance(turn, str) for turn in turns):
        raise ValueError("'turns' must be a list of at least two texts")
    return [clean_turn(turn, f"turn {place}") for place, turn in enumerate(turns, start=1)]


def _pieces(turns: Sequence[str], sizes: Sequence[int], max_tokens: int) -> Iterator[Dialogue]:
    """Iterate over pieces with an even number of turns: a context that the speaker ends, and the listener's reply.

    Of a conversation with an odd number of turns the last is left out.
    """
    start, learned = 0, 0  # of the next piece; the first turn that no piece has
    while learned + 1 < len(turns):
        end = learned + 2  # one after the target
        while end + 2 <= len(turns) and sum(sizes[start : end + 1]) <= max_tokens:
            end += 2
        yield Dialogue(list(turns[start : end - 1]), turns[end - 1], new_turns=end - 1 - learned)
        learned, start = end, end - _REPEATED


def shortened(reply: str, limit: int) -> str:
    """Return the first one or two sentences of a reply that have at most `limit` characters.

    If two are too long, the first stands alone; if it is a formula like "I understand.", the second does. A sentence
    far longer than the limit ends at the last comma before it.

    Args:
        limit: in characters; 0 cuts nothing.
    """
    if not limit or len(reply) <= limit:
        return reply
    first, second = (*_sentences(reply), "", "")[:2]
    if second and len(first) + len(second) <= limit:
        return (first + second).strip()
    if second and len(first) <= STOCK and len(second) <= limit * OVER:
        return second.strip()
    if len(first) <= limit * OVER:
        return first.strip()
    clauses = [match.start() for match in _CLAUSE.finditer(first, 0, limit)]
    return first[: clauses[-1] if clauses else limit].strip() + "。"


def with_short_replies(turns: Sequence[str], limit: int) -> list[str]:
    """Return the turns of a conversation with every second one, the listener's, shortened."""
    return [shortened(turn, limit) if place % 2 else turn for place, turn in enumerate(turns)]


def _sentences(text: str) -> list[str]:
    return [match.group() for match in _SENTENCE.finditer(text) if match.group()]
