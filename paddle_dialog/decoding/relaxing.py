"""Searches again with fewer rules for the inputs that rules leave without any text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Rules = TypeVar("Rules")
Found = TypeVar("Found")


def search_relaxed(
    count: int, rules: Iterable[Rules], search: Callable[[Sequence[int], Rules], Sequence[Found | None]]
) -> list[Found | None]:
    """Search under the first of some rules that leave an input any text.

    Args:
        count: number of inputs.
        rules: tried in this order.
        search: returns what it finds for some of the inputs, given by number, under rules.

    Returns:
        What was found for each input; None where even the last rules leave nothing.
    """
    found: list[Found | None] = [None] * count
    for each in rules:
        pending = [number for number in range(count) if found[number] is None]
        if not pending:
            break
        for number, texts in zip(pending, search(pending, each), strict=True):
            found[number] = texts
    return found
