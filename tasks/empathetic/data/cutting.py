"""Listeners' turns cut to one or two sentences, where a corpus answers in essays."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SENTENCE = re.compile(r".*?(?:[。！？!?…]+[”’」』）)\"]*|$)", re.DOTALL)
_CLAUSE = re.compile(r"[，,；;：:、]")
STOCK = 12  # characters up to which a first sentence is often a mere formula
OVER = 1.5  # how much a single sentence may exceed the limit before it is cut inside


def shortened(reply: str, limit: int) -> str:
    """Return the first one or two sentences of a reply that have at most `limit` characters.

    If two are too long, the first stands alone; if it is a formula like "I understand.", the second does. A sentence
    far longer than the limit ends at the last comma before it.

    Args:
        reply: the listener's turn.
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
