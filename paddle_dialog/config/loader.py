"""Configuration files: read with their bases and overrides, built as dataclasses, dumped whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from paddle_dialog.config.environment import UnfilledReferenceError, escape, expand
from paddle_dialog.config.overrides import apply_override, merge
from paddle_dialog.config.typed import build
from paddle_dialog.config.yaml_text import parse_file_text, write_yaml
from paddle_dialog.errors import UserError
from paddle_dialog.shipped import find_recipe

__all__ = ["build", "dump", "read_config", "replaced"]

Config = TypeVar("Config")


def read_config(path: str | Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Read a YAML configuration, laid over its `base:` files, with the overrides on top.

    Args:
        path: the YAML file, or the name of a recipe that ships; its `base: other.yaml` is relative to the file
            that names it.
        overrides: `section.key=value` texts; a later one wins.

    Returns:
        The merged mapping, not yet typed: `${NAME}` references are filled by `build`.

    Raises:
        UserError: a file or recipe is missing or no YAML mapping, bases form a circle, or an override is malformed.
    """
    mapping = _read_with_base(find_recipe(path), ())
    for override in overrides:
        mapping = apply_override(mapping, override)
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

    Args:
        config: a dataclass instance.
    """
    return write_yaml(_plain(config))


def replaced(config: Config, values: Mapping[str, Any]) -> Config:
    """Return a configuration with other values, which are not checked again.

    Args:
        config: a dataclass instance, which stays as it is.
        values: by `section.key`.
    """
    for key, value in values.items():
        name, _, rest = key.partition(".")
        value = replaced(getattr(config, name), {rest: value}) if rest else value
        config = dataclasses.replace(config, **{name: value})  # type: ignore[type-var]
    return config


def _read_with_base(path: Path, readers: tuple[Path, ...]) -> dict[str, Any]:
    real = path.resolve()
    if real in (reader.resolve() for reader in readers):
        chain = " → ".join(str(reader) for reader in (*readers, path))
        raise UserError(f"{readers[-1]}: base: the files are each other's base ({chain}); remove one base")
    mapping = _read_file(path, readers)
    if "base" not in mapping:
        return mapping
    base = mapping.pop("base")
    if not isinstance(base, str) or not base:
        raise UserError(f"{path}: base: must be the name of a YAML file, found {base!r:.80}")
    try:
        base_path = path.parent / expand(base)
    except UnfilledReferenceError as error:
        raise UserError(f"{path}: base: {error}") from error
    return merge(_read_with_base(base_path, (*readers, path)), mapping)


def _read_file(path: Path, readers: tuple[Path, ...]) -> dict[str, Any]:
    where = f"{readers[-1]}: base {path}" if readers else f"{path}"
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
        return {
            field.name: _plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.init
        }
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return escape(value) if isinstance(value, str) else value
