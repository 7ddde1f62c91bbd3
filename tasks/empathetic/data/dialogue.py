"""Dialogues: what one is, how turns are checked, and reading them from what ships, files and the official corpus.

EmpatheticDialogues (Rashkin et al. 2019) is published as CSV files in an archive. They have no quoting: a comma in a
text is written `_comma_` and a quotation mark is an ordinary, sometimes unbalanced, character. Python's csv module
would join lines at such a mark.
"""

from __future__ import annotations

import json
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from paddle_dialog.data import corpora
from paddle_dialog.data.files import Record, parse_json, read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, EMOTIONS_OF, emotion_id
from paddle_dialog.tasks.empathetic.data.language import ENGLISH, Language

HAS_TEXT = r"[^\s\x00-\x1f\x7f-\x9f]"  # a pattern that matches in every turn that is not empty
_CONVERSATION = re.compile(r'\s*\{.*"context"\s*:', re.DOTALL)
_WORD = re.compile(r"\w")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # a reply may copy a turn's characters to a terminal

_REPEATED = 2  # turns of a piece that the next one repeats first; even, so that the speaker begins
_DIALOGUE = '{"context": [turn, …], "target": …, "emotion": …, "situation": …}'
SHIPPED = ("sample", "small_talk")  # files of the task's folder
_FILES = {"en": "{}.jsonl", "zh": "{}_zh.jsonl"}  # by language
_CSV = (".csv", ".csv.xz", ".csv.gz")

COLUMNS = ("conv_id", "utterance_idx", "context", "prompt", "speaker_idx", "utterance", "selfeval", "tags")
SPLITS = ("train", "valid", "test")
_ARCHIVE = re.compile(r"(?P<path>.+\.(?:tar\.gz|tgz))(?::(?P<split>[^:/\\]*))?", re.IGNORECASE)
_RATINGS = re.compile(r"[\d|_\s]*")


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A context and the listener's next turn."""

    # The turns before it, oldest first; the speaker has the first, third, … and the last.
    context: list[str]
    target: str  # the listener's reply; empty where the example teaches the emotion alone
    emotion: str | None = None  # the speaker's emotion, one of the language's, or None if unknown
    situation: str | None = None  # what the speaker had in mind, or None if unknown. No model sees it.
    # How many of the newest turns of the context are in no earlier example of the conversation, so that a model
    # that also learns contexts learns each turn once.
    new_turns: int = 1


def clean_turn(text: str, role: str) -> str:
    """Return a turn on one line, without control characters and superfluous blanks.

    Args:
        role: what to call it in a message, for example "turn 2 of the context".
    """
    text = " ".join(_CONTROL.sub(" ", text).split())
    if not text:
        raise ValueError(f"{role} is empty")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{role} has half of a surrogate pair; write the whole character")
    return text


def check_alternation(context: Sequence[str]) -> None:
    """Check that the speaker begins and ends the context."""
    if len(context) % 2 == 0:
        raise ValueError(
            f"the context has {len(context)} turns, so speaker and listener do not alternate; the speaker "
            "has the first and the last turn of a context, which makes an odd number"
        )


def known_emotion(label: str, emotions: Sequence[str]) -> str:
    """Return the label as the emotions of a language spell it."""
    try:
        return emotions[emotion_id(label, emotions)]
    except UserError as error:
        raise ValueError(str(error)) from error


def checked_context(context: Sequence[str], number: int = 1) -> list[str]:
    """Return the turns of a conversation, cleaned."""
    if isinstance(context, str):
        raise UserError(f"a conversation is a list of turns, e.g. [{context[:20]!r}]; this is one text")
    if not isinstance(context, Sequence):
        raise UserError(
            f"conversation {number} is {context!r}, and must be a list of turns; leave empty ones out"
        )
    if not context:
        raise UserError("the conversation has no turn; give at least the speaker's first")
    for place, turn in enumerate(context, start=1):
        if not isinstance(turn, str):
            raise UserError(f"turn {place} of conversation {number} is {turn!r}, and must be a text")
    try:
        role = "the turn" if len(context) == 1 else "turn {}"
        turns = [clean_turn(turn, role.format(number)) for number, turn in enumerate(context, start=1)]
        check_alternation(turns)
    except ValueError as error:
        raise UserError(f"{error}; give what the speaker says, e.g. I lost my dog yesterday.") from error
    return turns


def parse_context(text: str) -> list[str]:
    """Read a user's input.

    Args:
        text: a single turn, or a conversation as `{"context": [turn, …]}`; other keys, such as those of a
            dialogue example, are ignored.
    """
    if not _CONVERSATION.match(text):
        return [text]
    start = repr(text[:40])
    try:
        turns = parse_json(text).get("context")
    except ValueError as error:
        raise UserError(f'{start} is {error}; give a turn as text, or {{"context": [turn, …]}}') from error
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise UserError(f"{start} is JSON whose context must be a list of turns, each a text in quotes")
    return turns


def in_words(turn: str, language: str) -> str:
    """Return a sentence for a turn of emoji alone, as 😭😭😭 is "I am so sad today."; any other turn as it is."""
    return _said_by_emoji(turn, language)[0] or turn


def reply_to_emoji(turn: str, language: str) -> str | None:
    """Return a reply to emoji alone that suits whatever was said before; None to any other turn."""
    return _said_by_emoji(turn, language)[1] or None


def _said_by_emoji(turn: str, language: str) -> Sequence[str]:
    """Return what the commonest emoji of a turn says, and the reply to it; empty where there is a word or none."""
    known = _emoji_sentences(language)
    found = [] if _WORD.search(turn) else [character for character in turn if character in known]
    return known[Counter(found).most_common(1)[0][0]] if found else ("", "")


@cache
def _emoji_sentences(language: str) -> dict[str, list[str]]:
    """Read `texts/emoji.tsv`: emoji, what they say in English and in Chinese, and the replies in both."""
    path = Path(__file__).parent.parent / "texts" / "emoji.tsv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    first = 1 if language == "en" else 2
    return {emoji: row[first::2] for row in rows for emoji in row[0]}


def read_dialogues(source: str, language: str = "en") -> list[Dialogue]:
    """Read all examples of a source, in its order.

    Args:
        source: `sample` or `small_talk` (dialogues written for this project), the official archive `….tar.gz` (its
            train split) or `….tar.gz:train|valid|test`, one of its `.csv` files, or a file of
            any other name in one of the forms of `corpora.read_conversations`.
        language: whose shipped dialogues and emotions are meant.

    Raises:
        UserError: the source cannot be read, or a line of it is not an example (named by file and number).
    """
    if (archive := _ARCHIVE.fullmatch(source)) is not None:
        path, split = Path(archive["path"]), archive["split"] or "train"
        if split not in SPLITS:
            raise UserError(f"{path}: unknown split {split!r}; choose one of {', '.join(SPLITS)}")
        return list(_of_corpus(_member_lines(path, f"{split}.csv"), f"{path}:{split}.csv"))
    if source.lower().endswith(_CSV):
        return list(_of_corpus(read_lines(source), source))
    path = Path(source)
    if source in SHIPPED:
        path = Path(__file__).parent.parent / _FILES[language].format(source)
    dialogues: list[Dialogue] = []
    for number, record in corpora.read_conversations(path):
        try:
            dialogues += _dialogues(record, EMOTIONS_OF[language])
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}") from error
    if not dialogues:
        raise UserError(f"{path}: no dialogue in this file; give {corpora.CONVERSATIONS}")
    return dialogues


def _dialogues(record: Record, emotions: Sequence[str]) -> Iterator[Dialogue]:
    """Read an example or a whole conversation.

    Args:
        record: of a JSON object with `context` (a list of turns, speaker first) and `target`, and if known `emotion`
            and `situation`; the target may be null where there is an emotion, which alone is learned then. Or one
            with `turns`, speaker first, of which every listener's turn is an example, and if known `emotion`, the
            speaker's throughout. Other keys are ignored.
        emotions: the labels that are known.

    Raises:
        ValueError: the record is neither; the message says what would be right.
    """
    if "turns" not in record or "context" in record:
        yield _example(record, emotions)
        return
    turns, emotion = _turns(record), _emotion(record, emotions)
    for place in range(1, len(turns), 2):
        yield Dialogue(turns[:place], turns[place], emotion)


def _example(record: dict[str, Any], emotions: Sequence[str]) -> Dialogue:
    for key in ("context", "target"):
        if key not in record:
            raise ValueError(f"key {key!r} is missing; a line must be {_DIALOGUE}")
    turns = record["context"]
    if not isinstance(turns, list) or not turns:
        raise ValueError("'context' must be a list of at least one turn")
    context = _cleaned(turns, "turn {} of the context")
    check_alternation(context)
    emotion, target, situation = _emotion(record, emotions), record["target"], record.get("situation")
    if target is not None or emotion is None:
        target = clean_turn(_string(target, "'target'"), "'target'")
    if situation is not None:
        situation = _string(situation, "'situation'")
        situation = clean_turn(situation, "'situation'") if situation.strip() else None
    return Dialogue(context, target or "", emotion, situation)


def _turns(record: Record) -> list[str]:
    turns = record.get("turns")
    if not isinstance(turns, list) or len(turns) < 2:
        raise ValueError("'turns' must be a list of at least two turns")
    return _cleaned(turns, "turn {}")


def _emotion(record: Record, emotions: Sequence[str]) -> str | None:
    label = record.get("emotion")
    return None if label is None else known_emotion(_string(label, "'emotion'"), emotions)


def _cleaned(turns: Sequence[Any], role: str) -> list[str]:
    named = [(turn, role.format(number)) for number, turn in enumerate(turns, start=1)]
    return [clean_turn(_string(turn, name), name) for turn, name in named]


def _string(value: Any, role: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{role} is {json.dumps(value, ensure_ascii=False)[:40]}; it must be a string")
    return value


def read_conversations(source: str, max_tokens: int, language: Language = ENGLISH) -> list[Dialogue]:
    """Read conversations and cut them into pieces that a model can take.

    Args:
        source: file in one of the forms of `corpora.read_conversations`, but for examples with `context`.
        max_tokens: of a piece's context, a mark before each turn counted. A longer conversation is several pieces,
            each of which begins with the last turns of the one before.

    Returns:
        Each piece as an example: its last turn is the target, all others are the context.

    Raises:
        UserError: the file cannot be read, or a line is not a conversation of two turns or more.
    """
    pieces: list[Dialogue] = []
    for turns in read_turns(source):
        sizes = [len(language.tokens_of(turn)) + 1 for turn in turns]
        pieces += _pieces(turns, sizes, max_tokens)
    if not pieces:
        raise UserError(f"{source}: no conversation in this file; give {corpora.CONVERSATIONS}")
    return pieces


def read_turns(source: str) -> Iterator[list[str]]:
    """Iterate over the turns of each conversation of a file; arguments and errors as for `read_conversations`."""
    for number, record in corpora.read_conversations(Path(source)):
        try:
            yield _turns(record)
        except ValueError as error:
            raise UserError(f"{source}:{number}: {error}; a line must be {corpora.CONVERSATIONS}") from error


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


class _Row(NamedTuple):
    """A line of the published corpus."""

    conversation: str
    number: int
    emotion: str
    situation: str
    person: str
    text: str


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


def _of_corpus(lines: Iterable[tuple[int, str]], where: str) -> Iterator[Dialogue]:
    """Turn CSV lines into examples: every listener turn with the turns before it."""
    finished: set[str] = set()
    rows: list[_Row] = []
    written = ((number, line) for number, line in lines if line.strip())
    number, header = next(written, (1, ""))
    if header.split(",")[: len(COLUMNS)] != list(COLUMNS):
        raise UserError(f"{where}:{number}: not the header of this corpus; it is {','.join(COLUMNS)}")
    for number, line in written:
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
    label, said = known_emotion(emotion, EMOTIONS), clean_turn(_text(text), "the utterance")
    return _Row(conversation, int(number), label, " ".join(_text(situation).split()), person.strip(), said)


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
    people = [one.person for one in earlier[-2:]]
    if people and (row.person == people[-1] or people[0] not in (row.person, people[-1])):
        raise ValueError(
            f"speaker_idx is {row.person} after {' and '.join(people)}, so speaker and listener do not alternate"
        )
    if earlier and row.emotion != earlier[0].emotion:
        raise ValueError(f"the emotion changes from {earlier[0].emotion} to {row.emotion} in a conversation")


def _of_conversation(rows: list[_Row]) -> Iterator[Dialogue]:
    texts = [row.text for row in rows]
    for position in range(1, len(texts), 2):
        yield Dialogue(texts[:position], texts[position], rows[0].emotion, rows[0].situation or None)
