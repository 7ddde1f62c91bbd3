"""A dialogue example, and how turns and contexts are checked in files, commands and requests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paddle_dialog.data.files import parse_json
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.data.emotions import emotion_id


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


HAS_TEXT = r"[^\s\x00-\x1f\x7f-\x9f]"  # a pattern that matches in every turn that is not empty
_CONVERSATION = re.compile(r'\s*\{.*"context"\s*:', re.DOTALL)
_WORD = re.compile(r"\w")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # a reply may copy a turn's characters to a terminal


def clean_turn(text: str, role: str) -> str:
    """Return a turn on one line, without control characters and superfluous blanks.

    Args:
        role: what to call it in a message, for example "turn 2 of the context".
    """
    text = " ".join(_CONTROL.sub(" ", text).split())
    if not text:
        raise ValueError(f"{role} is empty")
    check_characters(text, role)
    return text


def check_characters(text: str, role: str) -> None:
    """Check that a text can be written as UTF-8."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{role} has half of a surrogate pair; write the whole character")


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
