"""Typed settings: dataclasses declare keys, are built with every problem reported at once, and explain themselves."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import math
import re
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_origin

from paddle_dialog.config.loader import DuplicateKeyError, UnfilledReferenceError, expand, flat, parse_value
from paddle_dialog.errors import UserError

Problem = tuple[str, str]  # relative key, what is wrong

MAX_NUMBER = 65_536  # the bound of a number whose key declares none: more could not run
MIN_POSITIVE = 1e-12  # the bound of a positive number whose key declares no minimum: less would be nothing
MAX_COUNT = 2**31 - 1  # the bound of a count that costs nothing
LINE_WIDTH = 100  # of an explanation
REQUIRED = "required"

T = TypeVar("T")

_QUOTES = "; put it in quotes"
_SCALARS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
_BOUNDS = {"min": "at least", "above": "above", "max": "at most"}
# YAML 1.1 wants a point and a signed exponent in a float, so it reads 1e-3 as text.
_EXPONENT_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+", re.ASCII)


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
        above: number that the value must exceed; above 0 it must reach `MIN_POSITIVE` too.
        maximum: greatest number, inclusive; by default `MAX_NUMBER`.
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


def build(cls: type[T], mapping: Mapping[str, Any], where: str) -> T:
    """Build a dataclass from a mapping, checking types, bounds, unknown keys and cross-checks.

    Fields may be bool, int, float, str, `X | None`, `list[X]`, `dict[str, X]`, `Literal[…]`, a dataclass, or
    a union of dataclasses that differ in their `name: Literal["…"]`. Field metadata `min`, `max` (inclusive)
    and `above` (exclusive) bound the numbers of a field, also inside a list or dict. A dataclass may define
    `problems(self) -> Iterable[tuple[str, str]]` with (relative key, what is wrong and what would be right);
    it is asked once all fields of the dataclass have been built.

    Args:
        mapping: its values by field name; `${NAME}` in text is filled from the environment.
        where: the source of the values (a file name), which begins the message.
    """
    builder = _Builder()
    built = builder.section(cls, mapping, "")
    if len(builder.problems) == 1:
        raise UserError(f"{where}: {builder.problems[0]}")
    if builder.problems:
        raise UserError("\n".join([f"{where}: {len(builder.problems)} problems:", *builder.problems]))
    return built


def _join(prefix: str, key: str) -> str:
    return f"{prefix}.{key}" if prefix and key else prefix or key


class _Builder:
    """Converts values by type hint; collects `problems`, and goes on with None, instead of raising."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._missing = 0  # values that could not be converted

    def report(self, key: str, problem: str) -> None:
        """Keep a problem; building goes on."""
        name = key if key.isprintable() else shown(key)
        self.problems.append(f"{name or 'the top level'}: {problem}")

    def fail(self, key: str, problem: str) -> None:
        """Keep a problem that leaves no value, so that the section around it is not made."""
        self._missing += 1
        self.report(key, problem)

    def wrong(self, hint: Any, value: Any, key: str, metadata: Mapping[str, Any], advice: str = "") -> None:
        self.fail(key, f"must be {describe(hint, metadata)}, found {shown(value)}{advice}")

    def section(self, cls: Any, value: Any, key: str, label: str = "") -> Any:
        if not isinstance(value, Mapping):
            advice = "; remove the key to take the defaults" if value is None else ""
            return self.wrong(cls, value, key, {}, advice)
        fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
        hints = field_hints(cls)
        for name in value:
            if name not in fields:
                self.unknown_key(name, list(fields), key, label)
        built: dict[str, Any] = {}
        before = self._missing
        for name, field in fields.items():
            path = _join(key, name)
            if name in value:
                built[name] = self.convert(hints[name], value[name], path, field.metadata)
            elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                self.fail(path, f"missing; must be {describe(hints[name], field.metadata)}")
        if self._missing > before:
            return None
        instance = cls(**built)
        for relative, problem in getattr(instance, "problems", tuple)():
            self.report(_join(key, relative), problem)
        return instance

    def unknown_key(self, name: Any, known: list[str], key: str, label: str) -> None:
        text = name if isinstance(name, str) and name.isprintable() else shown(name)
        near = difflib.get_close_matches(text, known, n=1)
        right = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known) or 'none'}"
        self.report(_join(key, text), f"unknown key{label and f' of {label}'}; {right}")

    def convert(self, hint: Any, value: Any, key: str, metadata: Mapping[str, Any]) -> Any:
        choices = members(hint)
        if isinstance(value, str):
            try:
                value = _filled(value, choices, is_optional(hint))
            except UnfilledReferenceError as error:
                return self.fail(key, str(error))
        if value is None and is_optional(hint):
            return None
        if len(choices) > 1:
            return self.tagged_section(choices, value, key)
        choice = choices[0]
        if dataclasses.is_dataclass(choice):
            return self.section(choice, value, key)
        origin = typing.get_origin(choice)
        if origin in (list, dict):
            return self.container(hint, choice, value, key, metadata)
        if origin is Literal:
            for known in typing.get_args(choice):
                if known == value and type(known) is type(value):
                    return value
            # YAML 1.1 reads on, off, yes and no as booleans.
            return self.wrong(hint, value, key, metadata, _QUOTES if isinstance(value, bool) else "")
        return self.scalar(hint, choice, value, key, metadata)

    def container(self, hint: Any, choice: Any, value: Any, key: str, metadata: Mapping[str, Any]) -> Any:
        origin, inner = typing.get_origin(choice), typing.get_args(choice)[-1]
        if not isinstance(value, origin):
            return self.wrong(hint, value, key, metadata)
        if origin is list:
            return [self.convert(inner, item, f"{key}[{i}]", metadata) for i, item in enumerate(value)]
        for name in value:
            if not isinstance(name, str):
                return self.fail(key, f"its keys must be text, found {shown(name)}{_QUOTES}")
        return {name: self.convert(inner, item, _join(key, name), metadata) for name, item in value.items()}

    def scalar(self, hint: Any, choice: Any, value: Any, key: str, metadata: Mapping[str, Any]) -> Any:
        number = value
        if choice is float and isinstance(value, str) and _EXPONENT_FLOAT.fullmatch(value):
            number = float(value)
        accepted = (int, float) if choice is float else (choice,)
        if type(number) not in accepted:
            quotes = choice is str and isinstance(value, (bool, int, float))
            return self.wrong(hint, value, key, metadata, _QUOTES if quotes else "")
        if isinstance(number, str) and "\0" in number:
            return self.fail(key, "must not hold the character NUL")
        if choice in (str, bool):
            return number
        if choice is float:
            try:
                number = float(number)
            except OverflowError:
                number = math.inf
            if not math.isfinite(number):
                return self.wrong(hint, value, key, metadata)
        # The message states the bounds, so those of all numbers join only where they are broken.
        if number > MAX_NUMBER:
            metadata = {"max": MAX_NUMBER, **metadata}
        if metadata.get("above") == 0 and 0 < number < MIN_POSITIVE:
            metadata = {"min": MIN_POSITIVE}
        low, above, high = metadata.get("min"), metadata.get("above"), metadata.get("max")
        inside = (low is None or low <= number) and (above is None or above < number)
        return (
            number if inside and (high is None or number <= high) else self.wrong(hint, value, key, metadata)
        )

    def tagged_section(self, choices: list[Any], value: Any, key: str) -> Any:
        by_name = {tag: choice for choice in choices for tag in tags(choice)}
        known = ", ".join(by_name)
        if not isinstance(value, Mapping):
            return self.fail(key, f"must be a section with a name out of {known}, found {shown(value)}")
        if "name" not in value:
            return self.fail(_join(key, "name"), f"missing; must be one of {known}")
        # As `convert` takes a field of these choices.
        name = self.convert(Literal[tuple(by_name)], value["name"], _join(key, "name"), {})
        return None if name is None else self.section(by_name[name], value, key, label=name)


def _filled(text: str, choices: list[Any], optional: bool) -> Any:
    """Fill `${NAME}` and, where the field takes no text (`epochs: ${EPOCHS:-3}`), read the result as YAML.

    An optional text filled with `null` is none.
    """
    filled = expand(text)
    if optional and filled != text and filled == "null":
        return None
    takes_text = any(choice is str or typing.get_origin(choice) is Literal for choice in choices)
    if filled == text or takes_text:
        return filled
    try:
        return parse_value(filled)
    except DuplicateKeyError as error:
        raise UnfilledReferenceError(f"{filled!r:.80}: {error.problem}") from error


@functools.cache
def field_hints(cls: Any) -> dict[str, Any]:
    """Return the type hints of a dataclass, its bases included."""
    return typing.get_type_hints(cls)


def members(hint: Any) -> list[Any]:
    """Return the alternatives of a hint without None: one type, or the dataclasses of a tagged union."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    choices = [each for each in typing.get_args(hint) if each is not types.NoneType] if union else [hint]
    for choice in choices:
        simple = choice in _SCALARS or typing.get_origin(choice) in (list, dict, Literal)
        if not (dataclasses.is_dataclass(choice) or (simple and len(choices) == 1)):
            raise TypeError(f"{hint} cannot be the type of a configuration's field; `build` lists what can")
    return choices


def is_optional(hint: Any) -> bool:
    """Return whether the hint accepts None."""
    return types.NoneType in typing.get_args(hint)


def tags(cls: Any) -> tuple[str, ...]:
    """Return the names by which a tagged union chooses this dataclass, those of its `name: Literal[…]`."""
    hint = field_hints(cls).get("name")
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


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


def shown(value: Any) -> str:
    """Return a value on one line, as YAML would write it, cut to 80 characters."""
    if isinstance(value, Mapping):
        text = f"a section (keys: {', '.join(str(key) for key in value)})" if value else "an empty section"
    elif isinstance(value, list):
        inner = ("…" if isinstance(item, (list, Mapping)) else shown(item) for item in value[:20])
        text = f"[{', '.join(inner)}]"
    elif value is None or isinstance(value, (bool, int, float, str)):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


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
