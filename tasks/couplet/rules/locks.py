"""Characters of the answer that the user fixes, by a template or by position."""

from __future__ import annotations

from collections.abc import Mapping

from paddle_dialog.errors import UserError
from paddle_dialog.text.simplified import simplified_line

FREE = "？"  # the mark of a position left to the model; it is also made of `?`


def parse_template(template: str, line: str, given: str = "上联") -> dict[int, str]:
    """Return the locked characters of a template such as ？？？？花更红.

    Args:
        template: one character a position, ？ or ? where any may stand; blanks are dropped.
        line: the given one, normalised.
        given: its name, for messages.

    Returns:
        Position (0 is the first) → character.

    Raises:
        UserError: template and line differ in length.
    """
    written = simplified_line(template)
    if len(written) != len(line):
        raise UserError(
            f"the template '{template[:40]}' has {len(written)} characters and the {given} '{line[:40]}' "
            f"{len(line)}; give one for each, ？ where any may stand"
        )
    return {place: character for place, character in enumerate(written) if character != FREE}


def check_locks(lock: Mapping[int, str], line: str, given: str = "上联") -> dict[int, str]:
    """Return locked characters in the written form of `simplified_line`.

    Args:
        lock: position (0 is the first) → character.
        line: the given one, normalised.
        given: its name, for messages.

    Raises:
        UserError: a position lies outside the line, or does not hold exactly one character.
    """
    locks = {}
    for place, character in lock.items():
        written = simplified_line(character)
        if not 0 <= place < len(line):
            raise UserError(
                f"lock: position {place} is outside the {given} '{line[:40]}'; it has 0 to {len(line) - 1}"
            )
        if len(written) != 1:
            raise UserError(f"lock: position {place} holds '{character[:40]}'; give exactly one character")
        if written != FREE:
            locks[place] = written
    return locks
