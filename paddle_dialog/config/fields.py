"""Declares the keys of a configuration: default, limits and help in one place."""

from __future__ import annotations

import dataclasses
from typing import Any

Problem = tuple[str, str]  # relative key, what is wrong

MOST = 65_536  # the bound of a number whose key declares none: more could not run
LEAST = 1e-12  # the bound of a positive number whose key declares no minimum: less would be nothing
ENDLESS = 2**31 - 1  # the bound of a count that costs nothing


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
        help: what it does, in a short phrase; `--help-config` prints it. A key declared again
            in a subclass keeps the phrase of the base class if it brings none.
        minimum: least number, inclusive.
        above: number that the value must exceed; above 0 it must reach `LEAST` too.
        maximum: greatest number, inclusive; by default `MOST`.
    """
    bounds = {"min": minimum, "above": above, "max": maximum}
    metadata = {name: bound for name, bound in bounds.items() if bound is not None}
    return dataclasses.field(default=default, metadata={**metadata, "help": help} if help else metadata)


def at_least(minimum: float, default: Any, help: str = "", maximum: float | None = None) -> Any:
    """Declare a number that must not be below `minimum`; see `setting`."""
    return setting(default, help, minimum=minimum, maximum=maximum)


def rate(default: float, help: str = "") -> Any:
    """Declare a number between 0 and 1."""
    return setting(default, help, minimum=0.0, maximum=1.0)
