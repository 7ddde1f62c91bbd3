"""YAML text to plain values, stricter than `yaml.safe_load` and with errors a user can act on."""

from __future__ import annotations

import typing
from typing import Any

import yaml

from paddle_dialog.errors import UserError

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class DuplicateKeyError(yaml.MarkedYAMLError):
    """The same key stands twice in one mapping."""


class StrictLoader(yaml.SafeLoader):
    """A `SafeLoader` that refuses duplicate keys and leaves dates as text (no field is a date)."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._open_anchors: list[str] = []

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose one node; a value that contains itself is refused, since walking it would not end."""
        event: Any = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in self._open_anchors:
                problem = f"*{event.anchor} stands inside the value it names"
                mark = typing.cast(yaml.Mark, event.start_mark)
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
            return super().compose_node(parent, index)
        self._open_anchors.append(event.anchor)
        node = super().compose_node(parent, index)
        self._open_anchors.pop()
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose one mapping and refuse duplicate keys; construction would be too late, as it expands `<<`.

        Raises:
            DuplicateKeyError: a key stands twice.
        """
        node = super().compose_mapping_node(anchor)
        first_line: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            identity, line = (key.tag, key.value), key.start_mark.line + 1
            if identity in first_line:
                problem = f"key {key.value!r} stands twice (first on line {first_line[identity]}); keep one"
                raise DuplicateKeyError(problem=problem, problem_mark=key.start_mark)
            first_line[identity] = line
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct one node; PyYAML's bare Python errors (`!!bool x`, a 5000-digit integer) get a line."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError) as error:
            problem = f"{node.value!r:.60} cannot be read as {node.tag.rsplit(':', 1)[-1]}"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark) from error


class _Dumper(yaml.SafeDumper):
    """A `SafeDumper` that escapes unprintable text: PyYAML writes U+0085 bare and reads it as a space."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_str)


def write_yaml(value: Any) -> str:
    """Write plain values as YAML, in the given key order, each text on one line."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**20)


def parse_file_text(text: str, where: str) -> Any:
    """Parse the text of one YAML file.

    Args:
        text: the whole file.
        where: the file's name, for messages.

    Raises:
        UserError: the text is not YAML or has a duplicate key; names the line.
    """
    try:
        return yaml.load(text, Loader=StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{where}, line {mark.line + 1}" if mark else where
        what = error.problem or error.context or "cannot be parsed"
        if isinstance(error, DuplicateKeyError):
            raise UserError(f"{at}: {what}") from error
        raise UserError(f"{at}: not valid YAML: {what}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(f"{where}, line {line}: not valid YAML: {error.reason}") from error
    except RecursionError as error:
        raise UserError(f"{where}: not readable: its lists or mappings are nested too deeply") from error


def parse_value(text: str) -> Any:
    """Parse one value from the command line as YAML, or as plain text where YAML would lose part of it.

    Lists and mappings count only in their bracketed form (`[1, 2]`, `{a: 1}`), so that `Act 1: rain` or `- x`
    stays text; so does text in which YAML sees a comment, a tag or an anchor, and all invalid YAML.

    Raises:
        DuplicateKeyError: `{a: 1, a: 2}`.
    """
    stripped = text.strip()
    try:
        node = yaml.compose(stripped, Loader=StrictLoader)
        value = yaml.load(stripped, Loader=StrictLoader)
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
