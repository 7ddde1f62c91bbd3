"""Configuration files: YAML with bases, overrides and `${NAME}` references, read into mappings and written back.

Parsing is stricter than `yaml.safe_load`, and errors name the line.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from paddle_dialog.errors import UserError

Config = TypeVar("Config")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_MAX_KEYS = 10_000  # of one mapping; merged aliases, e.g. of a foreign bundle, can unfold to any number
_REFERENCE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\})?", re.ASCII)


def read_config(path: str | Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Read a YAML configuration, laid over its `base:` files, with the overrides on top.

    Args:
        path: the YAML file; its `base: other.yaml` is relative to the file that names it.
        overrides: `section.key=value` texts; a later one wins.
    """
    mapping = _read_with_base(Path(path), ())
    for override in overrides:
        mapping = _with_override(mapping, override)
    return mapping


def flat(mapping: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over the values of nested mappings and their names, `section.key`."""
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def dump(config: Any) -> str:
    """Write a configuration as YAML, defaults included, keys in field order.

    `build(type(config), yaml.safe_load(dump(config)), …)` gives an equal object.
    """
    # A width that keeps each text on one line.
    return yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True, width=2**20)


def replaced(config: Config, values: Mapping[str, Any]) -> Config:
    """Return a configuration with other values, which are not checked again."""
    for key, value in values.items():
        name, _, rest = key.partition(".")
        value = replaced(getattr(config, name), {rest: value}) if rest else value
        config = dataclasses.replace(config, **{name: value})  # type: ignore[type-var]
    return config


def _read_with_base(path: Path, ancestors: tuple[Path, ...]) -> dict[str, Any]:
    """Read a file over its base; `ancestors` are the files whose `base` led here."""
    if path.resolve() in (ancestor.resolve() for ancestor in ancestors):
        chain = " → ".join(str(ancestor) for ancestor in (*ancestors, path))
        raise UserError(f"{ancestors[-1]}: base: the files are each other's base ({chain}); remove one base")
    mapping = _read_file(path, f"{ancestors[-1]}: base {path}" if ancestors else f"{path}")
    if "base" not in mapping:
        return mapping
    base = mapping.pop("base")
    if not isinstance(base, str) or not base:
        raise UserError(f"{path}: base: must be the name of a YAML file, found {base!r:.80}")
    try:
        base_path = path.parent / expand(base)
    except UnfilledReferenceError as error:
        raise UserError(f"{path}: base: {error}") from error
    return _merge(_read_with_base(base_path, (*ancestors, path)), mapping)


def _read_file(path: Path, where: str) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UserError(f"{where}: no such file; give the path of a YAML configuration") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{where}: cannot be read: {reason}") from error
    value = parse_file_text(text, where)
    if not isinstance(value, dict):
        kind = "it is empty" if value is None else f"found a {type(value).__name__}"
        raise UserError(f"{where}: must be a mapping of sections (key: value lines), {kind}")
    return value


def _plain(value: Any) -> Any:
    """Return fresh dicts and lists (a shared one would become a YAML alias) with `${` made literal."""
    if dataclasses.is_dataclass(value):
        fields = (field.name for field in dataclasses.fields(value) if field.init)
        return {name: _plain(getattr(value, name)) for name in fields}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.replace("${", "$${") if isinstance(value, str) else value


def _with_override(mapping: Mapping[str, Any], override: str) -> dict[str, Any]:
    """Return a copy of the mapping with one `section.key=value` set, missing sections created."""
    key, equals, text = override.partition("=")
    path = [part.strip() for part in key.split(".")]
    if not equals or not all(path):
        raise UserError(f"-o {override}: must be section.key=value, for example training.epochs=3")
    try:
        value = parse_value(text)
    except DuplicateKeyError as error:
        raise UserError(f"-o {override}: {error.problem}") from error
    merged = node = dict(mapping)
    for part in path[:-1]:
        section = node.get(part)
        # A copy, as YAML aliases share sections. Where a value becomes a section, its type is reported as wrong.
        node[part] = dict(section) if isinstance(section, Mapping) else {}
        node = node[part]
    node[path[-1]] = value
    return merged


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one configuration over another: sections merge key by key, all else (lists too) is replaced.

    A section whose `name` differs is replaced as a whole: `name` chooses the dataclass of a section, and the
    keys of the one below belong to another.
    """
    merged = dict(below)
    for key, value in above.items():
        under = below.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            another = "name" in under and under["name"] != value.get("name", under["name"])
            merged[key] = value if another else _merge(under, value)
        else:
            merged[key] = value
    return merged


class DuplicateKeyError(yaml.MarkedYAMLError):
    """A key appears twice in one mapping."""


class _StrictLoader(yaml.SafeLoader):
    """A `SafeLoader` that refuses duplicate keys and leaves dates as text (no field is a date)."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose one mapping and refuse duplicate keys; construction would be too late, as it expands `<<`."""
        node = super().compose_mapping_node(anchor)
        first_line: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            identity, line = (key.tag, key.value), key.start_mark.line + 1
            if identity in first_line:
                problem = f"key {key.value!r} appears twice (first on line {first_line[identity]}); keep one"
                raise DuplicateKeyError(problem=problem, problem_mark=key.start_mark)
            first_line[identity] = line
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Expand `<<`, up to a bound."""
        super().flatten_mapping(node)
        if len(node.value) > _MAX_KEYS:
            problem = f"it has more than {_MAX_KEYS:,} keys"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct one node; PyYAML's bare Python errors (`!!bool x`, a 5000-digit integer) get a line."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError) as error:
            problem = f"{node.value!r:.60} cannot be read as {node.tag.rsplit(':', 1)[-1]}"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark) from error


def parse_file_text(text: str, where: str) -> Any:
    """Parse the text of one YAML file; an error names the line."""
    try:
        return _parse(text)[1]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{where}, line {mark.line + 1}" if mark else where
        what = error.problem or error.context or "cannot be parsed"
        kind = "" if isinstance(error, DuplicateKeyError) else "not valid YAML: "
        raise UserError(f"{at}: {kind}{what}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(f"{where}, line {line}: not valid YAML: {error.reason}") from error
    except RecursionError as error:
        raise UserError(f"{where}: not readable: its lists or mappings are nested too deeply") from error


def _parse(text: str) -> tuple[yaml.Node | None, Any]:
    """Return the node of a YAML document and its value."""
    loader = _StrictLoader(text)
    try:
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def parse_value(text: str) -> Any:
    """Parse one value from the command line as YAML, or as plain text where YAML would lose part of it.

    Lists and mappings count only in their bracketed form (`[1, 2]`, `{a: 1}`), so that `Act 1: rain` or `- x`
    stays text; so does text in which YAML sees a comment, a tag or an anchor, and all invalid YAML but a duplicate
    key (`DuplicateKeyError`).
    """
    stripped = text.strip()
    try:
        node, value = _parse(stripped)
    except DuplicateKeyError:
        raise
    except (yaml.YAMLError, RecursionError):
        return text
    if node is None:
        return None if not stripped else text
    if isinstance(node, yaml.ScalarNode):
        whole = node.style is not None or node.value == stripped
        return value if whole else text
    return value if stripped[0] in "[{" else text


class UnfilledReferenceError(Exception):
    """A reference to the environment that cannot be filled; the message says which and what to do."""


def expand(text: str) -> str:
    """Fill the references in a text; `$${` is a literal `${`.

    As in the shell, `:-default` also serves when the variable is set but empty.
    """

    def fill(match: re.Match[str]) -> str:
        if match.group() == "$${":
            return "${"
        name, default = match.group("name"), match.group("default")
        if name is None:
            raise UnfilledReferenceError(
                f"{text!r:.80} has a malformed ${{…}}; "
                "write ${NAME}, ${NAME:-default}, or $${ for a literal ${"
            )
        value = os.environ.get(name)
        if default is not None:
            return value or default
        if value is None:
            raise UnfilledReferenceError(
                f"environment variable {name} is not set; set it or write ${{{name}:-default}}"
            )
        return value

    return _REFERENCE.sub(fill, text)
