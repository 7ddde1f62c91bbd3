"""The clauses of a line."""

from __future__ import annotations

from paddle_dialog.text.characters import is_punctuation


def clauses(line: str) -> list[str]:
    """Return what stands between the marks of a line."""
    return "".join(" " if is_punctuation(character) else character for character in line).split()


def has_clauses(line: str) -> bool:
    """Return whether a line has several clauses: whether a mark stands inside it."""
    return any(map(is_punctuation, line[1:-1]))
