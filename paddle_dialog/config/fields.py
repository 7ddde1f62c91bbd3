"""Declares the keys of a configuration, and says what each accepts: default, limits and help in one place."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

Problem = tuple[str, str]  # relative key, what is wrong

MOST = 65_536  # the bound of a number whose key declares none: more could not run
LEAST = 1e-12  # the bound of a positive number whose key declares no minimum: less would be nothing
ENDLESS = 2**31 - 1  # the bound of a count that costs nothing
_SCALARS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
_BOUNDS = {"min": "at least", "above": "above", "max": "at most"}


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
        help: what it does, in a short phrase; `--help-config` and docs/settings.md print it. A key declared again
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


@functools.cache
def field_hints(cls: Any) -> dict[str, Any]:
    """Return the type hints of a dataclass, its bases included."""
    return typing.get_type_hints(cls)


def members(hint: Any) -> list[Any]:
    """Return the alternatives of a hint without None: one type, or the dataclasses of a tagged union.

    Raises:
        TypeError: the hint is not one that a configuration field may have.
    """
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    choices = (
        [choice for choice in typing.get_args(hint) if choice is not types.NoneType] if union else [hint]
    )
    if len(choices) > 1 and not all(dataclasses.is_dataclass(choice) for choice in choices):
        raise TypeError(f"a union in a configuration may hold only dataclasses and None, not {hint}")
    for choice in choices:
        origin = typing.get_origin(choice)
        text_keys = origin is not dict or typing.get_args(choice)[0] is str
        if not (choice in _SCALARS or dataclasses.is_dataclass(choice) or origin in (list, dict, Literal)):
            raise TypeError(f"{choice} cannot be the type of a configuration field")
        if not text_keys:
            raise TypeError(f"the keys of a configuration's dict must be str, not {choice}")
    return choices


def is_optional(hint: Any) -> bool:
    """Return whether the hint accepts None."""
    return types.NoneType in typing.get_args(hint)


def tags(cls: Any) -> tuple[str, ...]:
    """Return the names by which a tagged union chooses this dataclass, from its `name: Literal[…]`.

    Raises:
        TypeError: the dataclass has no such field.
    """
    hint = field_hints(cls).get("name")
    if typing.get_origin(hint) is not Literal:
        raise TypeError(f'{cls.__name__} is a member of a tagged union and needs `name: Literal["…"]`')
    return typing.get_args(hint)


def describe(hint: Any, metadata: Mapping[str, Any]) -> str:
    """Say what a field accepts, for example "an integer (at least 1) or null"."""
    choices = members(hint)
    choice, origin = choices[0], typing.get_origin(choices[0])
    inner = typing.get_args(choice)
    if len(choices) > 1:
        text = f"a section with a name out of {', '.join(tag for each in choices for tag in tags(each))}"
    elif dataclasses.is_dataclass(choice):
        keys = ", ".join(field.name for field in dataclasses.fields(choice) if field.init)
        text = f"a section (keys: {keys or 'none'})"
    elif origin is Literal:
        text = "one of " + ", ".join(shown(known) if not isinstance(known, str) else known for known in inner)
    elif origin is list:
        text = f"a list, each item {describe(inner[0], metadata)}"
    elif origin is dict:
        text = f"a section, each value {describe(inner[1], metadata)}"
    else:
        bounds = [f"{word} {metadata[name]}" for name, word in _BOUNDS.items() if name in metadata]
        text = _SCALARS[choice] + (f" ({' and '.join(bounds)})" if bounds and choice in (int, float) else "")
    return f"{text} or null" if is_optional(hint) else text


def bounds_broken(value: Any, metadata: Mapping[str, Any]) -> bool:
    """Return whether a number lies outside the field's `min`, `max` (inclusive) or `above` (exclusive)."""
    if isinstance(value, (bool, str)):
        return False
    below = "min" in metadata and value < metadata["min"]
    beyond = "max" in metadata and value > metadata["max"]
    return below or beyond or ("above" in metadata and value <= metadata["above"])


def shown(value: Any) -> str:
    """Return a value on one line, as it would stand in YAML, cut to 80 characters."""
    if isinstance(value, Mapping):
        text = f"a section (keys: {', '.join(str(key) for key in value)})" if value else "an empty section"
    elif isinstance(value, list):
        text = (
            f"[{', '.join('…' if isinstance(item, (list, Mapping)) else shown(item) for item in value[:20])}]"
        )
    elif value is None or isinstance(value, (bool, int, float, str)):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"
