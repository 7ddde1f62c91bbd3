"""A context of many turns as one sequence of tokens with roles, cut to the length a model can take."""

from collections.abc import Sequence
from dataclasses import dataclass

# Role ids index the role embedding; 0 belongs to padding and to positions that nobody said, such as CLS.
NO_ROLE, SPEAKER, LISTENER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class History:
    """A flattened context.

    Attributes:
        tokens: tokens of all kept turns, oldest first.
        roles: SPEAKER or LISTENER for each token; same length as `tokens`.
        dropped_tokens: tokens left out.
    """

    tokens: list[str]
    roles: list[int]
    dropped_tokens: int


def flatten(turns: Sequence[Sequence[str]], max_tokens: int | None = None) -> History:
    """Join the turns of a context; if there are too many tokens, keep the newest.

    Whole turns are kept from the newest back. The first that does not fit is cut to its newest tokens, and all older
    turns are dropped.

    Args:
        turns: tokens of each turn, oldest first; the speaker has the first.
        max_tokens: how many tokens may stay, at least 1; None keeps all.

    Raises:
        ValueError: `max_tokens` is below 1.
    """
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}, but at least one token must stay")
    total = sum(map(len, turns))
    room = total if max_tokens is None else max_tokens
    kept: list[tuple[int, Sequence[str]]] = []
    for position in range(len(turns) - 1, -1, -1):
        part = turns[position][-room:] if room else turns[position][:0]
        if not part and turns[position]:
            break
        kept.append((LISTENER if position % 2 else SPEAKER, part))
        # Older turns must not fill the space beside a cut one.
        room = room - len(part) if len(part) == len(turns[position]) else 0
    kept.reverse()
    tokens = [token for _, part in kept for token in part]
    roles = [role for role, part in kept for _ in part]
    return History(tokens, roles, total - len(tokens))
