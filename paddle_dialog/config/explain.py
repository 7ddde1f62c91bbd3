"""Explains the keys of a configuration, for `--help-config`."""

from __future__ import annotations

import dataclasses
import difflib
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_origin

from paddle_dialog.config.loader import flat
from paddle_dialog.config.typed import describe, field_hints, members, shown, tags
from paddle_dialog.errors import UserError

LINE_WIDTH = 100
REQUIRED = "required"


@dataclass(frozen=True)
class Key:
    """One key of a configuration."""

    name: str  # with its sections, e.g. `model.width`
    accepts: str  # its type and range in words
    default: str  # in YAML, or "required"
    help: str


@dataclass(frozen=True)
class Section:
    """The keys of one dataclass, without those of its sections."""

    name: str  # with the sections around it, e.g. `decoding.rerank`; empty at the top level
    tag: str  # the `name` that chooses this dataclass for the section, or ""
    help: str  # the first sentence of the dataclass's docstring
    keys: tuple[Key, ...]


def help_of(cls: Any, name: str) -> str:
    """Return what a key does, as declared in the dataclass or in the nearest base class that says it, or ""."""
    for each in cls.__mro__:
        declared = getattr(each, "__dataclass_fields__", {}).get(name)
        if declared is not None and "help" in declared.metadata:
            return str(declared.metadata["help"])
    return ""


def sections(cls: Any, name: str = "", tag: str = "") -> Iterator[Section]:
    """Iterate over a dataclass and the sections inside it, in the order of their fields."""
    keys: list[Key] = []
    inner: list[tuple[Any, str, str]] = []
    for field in dataclasses.fields(cls):
        path = f"{name}.{field.name}" if name else field.name
        hint = field_hints(cls)[field.name]
        choices = members(hint)
        if dataclasses.is_dataclass(choices[0]):
            inner += [(each, path, "".join(tags(each)[:1])) for each in choices]
        elif get_origin(choices[0]) is dict and dataclasses.is_dataclass(members(choices[0].__args__[1])[0]):
            inner.append((members(choices[0].__args__[1])[0], f"{path}.NAME", ""))
        elif not (tag and field.name == "name"):
            keys.append(Key(path, describe(hint, field.metadata), _default(field), help_of(cls, field.name)))
    yield Section(name, tag, " ".join((cls.__doc__ or "").partition("\n\n")[0].split()), tuple(keys))
    for each, path, inner_tag in inner:
        yield from sections(each, path, inner_tag)


def explain(cls: Any, wanted: str = "", values: Mapping[str, Any] | None = None) -> str:
    """Explain the keys of a configuration, for a terminal.

    Args:
        wanted: one section or key, e.g. `model` or `training.epochs`; by default all.
        values: those of a recipe, shown where they differ from the default.
    """
    given = {name: _in_yaml(value) for name, value in flat(values or {})}
    blocks = []
    for section in sections(cls):
        whole = not wanted or section.name == wanted or section.name.startswith(f"{wanted}.")
        keys = [key for key in section.keys if whole or key.name == wanted]
        chosen = not section.tag or given.get(f"{section.name}.name", section.tag) == section.tag
        if keys:
            title = section.name + (f" (name: {section.tag})" if section.tag else "")
            head = [f"{title}: {section.help}" if title else section.help]
            blocks.append("\n".join([*head, *(_key_as_text(key, given if chosen else {}) for key in keys)]))
    if not blocks:
        raise UserError(f"--help-config {wanted}: no such section or key; {_near(cls, wanted)}")
    return "\n\n".join(blocks)


def _default(field: dataclasses.Field[Any]) -> str:
    value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    return REQUIRED if value is dataclasses.MISSING else _in_yaml(value)


def _in_yaml(value: Any) -> str:
    return value if isinstance(value, str) and value else shown(value)


def _key_as_text(key: Key, given: Mapping[str, str]) -> str:
    value = "(required)" if key.default == REQUIRED else f"= {key.default}"
    if given.get(key.name, key.default) != key.default:
        value += f" (this recipe: {given[key.name]})"
    indent = " " * 6
    help_lines = textwrap.wrap(key.help, LINE_WIDTH, initial_indent=indent, subsequent_indent=indent)
    return "\n".join([f"  {key.name} {value}  # {key.accepts}", *help_lines])


def _near(cls: Any, wanted: str) -> str:
    names = [section.name for section in sections(cls) if section.name]
    keys = [key.name for section in sections(cls) for key in section.keys]
    near = difflib.get_close_matches(wanted, [*names, *keys], n=1)
    return f"did you mean {near[0]}?" if near else f"sections: {', '.join(dict.fromkeys(names))}"
