"""`section.key=value` overrides and the merging of one configuration over another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddle_dialog.config.yaml_text import DuplicateKeyError, parse_value
from paddle_dialog.errors import UserError


def apply_override(mapping: Mapping[str, Any], override: str) -> dict[str, Any]:
    """Return a copy of the mapping with one `section.key=value` set, missing sections created.

    Args:
        mapping: the configuration so far; not changed.
        override: the text after `-o`; its value is read by `parse_value`.

    Raises:
        UserError: there is no `=`, a part of the key is empty, or the key leads through a value or list.
    """
    key, equals, text = override.partition("=")
    path = [part.strip() for part in key.split(".")]
    if not equals or not all(path):
        raise UserError(f"-o {override}: must be section.key=value, for example training.epochs=3")
    try:
        value = parse_value(text)
    except DuplicateKeyError as error:
        raise UserError(f"-o {override}: {error.problem}") from error
    return _with_value(mapping, path, value, override)


def _with_value(
    mapping: Mapping[str, Any], path: list[str], value: Any, override: str, depth: int = 0
) -> dict[str, Any]:
    # Every level is copied: YAML aliases make two sections share one object.
    copied = dict(mapping)
    if depth == len(path) - 1:
        copied[path[depth]] = value
        return copied
    section = copied.get(path[depth])
    if section is None:
        section = {}
    if not isinstance(section, Mapping):
        at = ".".join(path[: depth + 1])
        kind = "a list" if isinstance(section, list) else "a single value"
        raise UserError(f"-o {override}: {at} is {kind}, not a section; override {at} as a whole")
    copied[path[depth]] = _with_value(section, path, value, override, depth + 1)
    return copied


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one configuration over another: sections merge key by key, all else (lists too) is replaced.

    A section whose `name` differs is replaced as a whole: `name` chooses the dataclass of a section, and the
    keys of the one below belong to another.
    """
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping) and not _renamed(under, value):
            merged[key] = merge(under, value)
        else:
            merged[key] = value
    return merged


def _renamed(below: Mapping[str, Any], above: Mapping[str, Any]) -> bool:
    return "name" in below and "name" in above and below["name"] != above["name"]
