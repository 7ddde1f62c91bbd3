"""How a line falls into clauses, e.g. 4+7: the usual patterns, and those that a request asks for."""

from __future__ import annotations

import importlib.resources
import re
from dataclasses import dataclass
from functools import cache

from paddle_dialog.errors import UserError

SHORTEST, LONGEST = 4, 15  # characters of a line, without punctuation
COMMA = "，"
_FORM = re.compile(r"[0-9]{1,2}(\+[0-9]{1,2})*")


@dataclass(frozen=True)
class Pattern:
    """The characters of each clause of a line; commas stand between them.

    Args:
        clauses: numbers of characters.
    """

    clauses: tuple[int, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.clauses))

    @property
    def length(self) -> int:
        """Characters, without punctuation."""
        return sum(self.clauses)

    @property
    def positions(self) -> list[list[int]]:
        """The positions of each clause's characters in the line."""
        starts = [sum(self.clauses[:number]) + number for number in range(len(self.clauses))]
        return [list(range(s, s + size)) for s, size in zip(starts, self.clauses, strict=True)]

    @property
    def commas(self) -> list[int]:
        """The positions of the commas in the line."""
        return [places[-1] + 1 for places in self.positions[:-1]]


@cache
def usual_patterns() -> dict[Pattern, int]:
    """Return the usual patterns with their frequencies, see `patterns.txt`."""
    text = (importlib.resources.files(__package__) / "patterns.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {Pattern(tuple(map(int, form.split("+")))): int(count) for form, count in rows}


def wanted_patterns(length: int | None, pattern: str | None) -> dict[Pattern, int]:
    """Return the patterns that a request allows, with their frequencies.

    Args:
        length: characters of a line without punctuation; None is any that fits `pattern`, else 7.
        pattern: as `4+7`; None is any usual one of the length.

    Raises:
        UserError: no line can be of this length or pattern, or the two contradict each other.
    """
    if pattern is not None:
        chosen = _parse(pattern)
        if length is not None and length != chosen.length:
            raise UserError(
                f"pattern {pattern} has {chosen.length} characters and length is {length}; give one of the two"
            )
        return {chosen: 1}
    wanted = 7 if length is None else length
    found = {usual: count for usual, count in usual_patterns().items() if usual.length == wanted}
    if not found:
        raise UserError(
            f"length {wanted} has no usual pattern; a line has {SHORTEST} to {LONGEST} characters"
        )
    return found


def _parse(pattern: str) -> Pattern:
    written = pattern.replace("＋", "+").replace(" ", "")
    if not _FORM.fullmatch(written):
        raise UserError(f"pattern '{pattern[:40]}' is none; write the clauses' characters, e.g. 4+7 or 5+5+7")
    chosen = Pattern(tuple(map(int, written.split("+"))))
    if not SHORTEST <= chosen.length <= LONGEST:
        raise UserError(
            f"pattern {written[:40]} has {chosen.length} characters; a line has {SHORTEST} to {LONGEST}"
        )
    if min(chosen.clauses) < 2 or max(chosen.clauses) > 11:
        raise UserError(f"pattern {written}: a clause has 2 to 11 characters, e.g. 4+7")
    return chosen
