"""A clause that can be said back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["trouble", "good", "plan", "wish", "plain"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Clause:
    """What the speaker has said, as the listener says it: "my dog died" is "your dog died".

    Args:
        text: without a full stop.
        kind: what it is to the speaker, which decides what goes with it.
        weight: the higher, the more it seems to be what the speaker wants heard.
    """

    text: str
    kind: Kind
    weight: float
