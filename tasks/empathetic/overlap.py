"""What a reply shares with earlier turns: repeated phrases, and clauses that are said back."""

from __future__ import annotations

import re
from collections.abc import Sequence

REPEATED = {"en": 4, "zh": 6}  # words or characters in a row that nobody wants to read twice

_UNIT = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[\u3400-\u9fff]")
_MARK = re.compile(r"[?？]")


def units(text: str) -> list[str]:
    """Return the words of a text in lower case, its Chinese characters one by one, and its question marks."""
    plain = text.lower().replace("’", "'")
    return [*_UNIT.findall(plain), *(["?"] if _MARK.search(plain) else [])]


def repeats(reply: str, turns: Sequence[str], language: str) -> bool:
    """Return whether a reply has a phrase that the listener has said before, or is one of his replies.

    Args:
        reply: a candidate.
        turns: of the conversation, the speaker's first and last.
        language: `en` or `zh`.
    """
    size = REPEATED[language]
    phrases = _phrases(reply, size)
    return any(reply == turn or phrases & _phrases(turn, size) for turn in turns[1::2])


def _phrases(text: str, size: int) -> set[tuple[str, ...]]:
    words = _UNIT.findall(text.lower().replace("’", "'"))
    return {tuple(words[place : place + size]) for place in range(len(words) - size + 1)}


def is_question(text: str) -> bool:
    """Return whether a text ends by asking."""
    return text.rstrip("\"'”’」 ").endswith(("?", "？"))
