"""Declares the keys of a configuration: default, limits and help in one place."""

from __future__ import annotations

from dataclasses import field
from typing import Any

Problem = tuple[str, str]  # relative key, what is wrong


def setting(
    default: Any,
    help: str = "",
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
) -> Any:
    """Declare a key of a configuration.

    Args:
        default: its value where a recipe does not set it.
        help: what it does, in a short phrase; `--help-config` and docs/settings.md print it. A key declared again
            in a subclass keeps the phrase of the base class if it brings none.
        minimum: least number, inclusive.
        above: number that the value must exceed.
        maximum: greatest number, inclusive.
    """
    bounds = {"min": minimum, "above": above, "max": maximum}
    metadata = {name: bound for name, bound in bounds.items() if bound is not None}
    return field(default=default, metadata={**metadata, "help": help} if help else metadata)


def at_least(minimum: float, default: Any, help: str = "") -> Any:
    """Declare a number that must not be below `minimum`."""
    return setting(default, help, minimum=minimum)


def rate(default: float, help: str = "") -> Any:
    """Declare a number between 0 and 1."""
    return setting(default, help, minimum=0.0, maximum=1.0)
