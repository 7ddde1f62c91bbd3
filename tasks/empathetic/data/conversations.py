"""Conversations without annotation, to learn the language from: `{"turns": [turn, …]}`, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paddle_dialog.data.records import Record, read_records
from paddle_dialog.errors import UserError
from tasks.empathetic.data.cutting import with_short_replies
from tasks.empathetic.data.dialogue import Dialogue, clean_turn
from tasks.empathetic.data.language import ENGLISH, Language

_SHAPE = '{"turns": [turn, turn, …]}'
_REPEATED = 2  # turns of a piece that the next one repeats first; even, so that the speaker begins


def read_conversations(
    source: str,
    max_tokens: int,
    window: int | None = None,
    language: Language = ENGLISH,
    reply_characters: int = 0,
) -> list[Dialogue]:
    """Read conversations and cut them into pieces that a model can take.

    Args:
        source: file of JSON lines, plain, `.gz` or `.xz`; keys other than `turns` are ignored.
        max_tokens: of a piece's context, a mark before each turn counted. A longer conversation is several pieces,
            each of which begins with the last turns of the one before.
        window: turns before a reply; with it every turn after the first is a reply, and a piece of its own with an
            odd number of turns before it, at most this one, as far as `max_tokens` allow; longer ones are left out.
        language: of the turns.
        reply_characters: what every second turn is cut to, see `shortened`; 0 cuts none.

    Returns:
        Each piece as an example: its last turn is the target, all others are the context.

    Raises:
        UserError: the file cannot be read, or a line is not a conversation of two turns or more.
    """
    pieces: list[Dialogue] = []
    for turns in read_turns(source, reply_characters):
        sizes = [len(language.tokens_of(turn)) + 1 for turn in turns]
        if window is None:
            pieces += _pieces(turns, sizes, max_tokens)
        else:
            pieces += _pairs(turns, sizes, max_tokens, window)
    if not pieces:
        raise UserError(f"{source}: no conversation in this file; a line must be {_SHAPE}")
    return pieces


def read_turns(source: str, reply_characters: int = 0) -> Iterator[list[str]]:
    """Iterate over the turns of each conversation of a file; arguments and errors as for `read_conversations`."""
    return read_records(source, lambda record: with_short_replies(_turns(record), reply_characters), _SHAPE)


def _turns(record: Record) -> list[str]:
    turns = record.get("turns")
    if not isinstance(turns, list) or len(turns) < 2 or not all(isinstance(turn, str) for turn in turns):
        raise ValueError("'turns' must be a list of at least two texts")
    return [clean_turn(turn, f"turn {place}") for place, turn in enumerate(turns, start=1)]


def _pairs(turns: Sequence[str], sizes: Sequence[int], max_tokens: int, window: int) -> Iterator[Dialogue]:
    """Iterate over the turns after the first, each with those before it; whoever spoke last counts as the speaker."""
    for place in range(1, len(turns)):
        start = max(0, place - window)
        start += (place - start + 1) % 2  # an odd number of turns
        while sum(sizes[start:place]) > max_tokens and start + 2 < place:
            start += 2
        if sum(sizes[start:place]) <= max_tokens:
            yield Dialogue(list(turns[start:place]), turns[place])


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
