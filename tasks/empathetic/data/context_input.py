"""Checks on the conversations that users enter."""

from __future__ import annotations

from collections.abc import Sequence

from paddle_dialog.errors import UserError
from tasks.empathetic.data.dialogue import check_alternation, clean_turn
from tasks.empathetic.data.sources import parse_context


def checked_context(context: Sequence[str]) -> list[str]:
    """Return the turns of a conversation, cleaned.

    Raises:
        UserError: it is no list, there is no turn, one is empty, or speaker and listener do not alternate.
    """
    if isinstance(context, str):
        raise UserError(f"a conversation is a list of turns, e.g. [{context[:20]!r}]; this is one text")
    if not context:
        raise UserError("the conversation has no turn; give at least the speaker's first")
    try:
        what = "the turn" if len(context) == 1 else "turn {}"
        turns = [clean_turn(turn, what.format(number)) for number, turn in enumerate(context, start=1)]
        check_alternation(turns)
    except ValueError as error:
        raise UserError(f"{error}; give what the speaker says, e.g. I lost my dog yesterday.") from error
    return turns


def parsed_context(text: str) -> list[str]:
    """Return the turns of a single turn or of a conversation as JSON; see `parse_context`.

    Raises:
        UserError: it is meant as a conversation and is malformed.
    """
    try:
        return parse_context(text)
    except ValueError as error:
        raise UserError(f"{text[:40]!r} is {error}") from error
