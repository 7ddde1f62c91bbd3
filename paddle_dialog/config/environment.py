"""`${NAME}` and `${NAME:-default}` in configuration text, filled from the environment."""

from __future__ import annotations

import os
import re

_REFERENCE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\})?", re.ASCII)


class UnfilledReferenceError(Exception):
    """A reference to the environment that cannot be filled; the message says which and what to do."""


def expand(text: str) -> str:
    """Fill the references in a text; `$${` stands for a literal `${`.

    As in the shell, `:-default` also serves when the variable is set but empty.

    Raises:
        UnfilledReferenceError: a variable without default is not set, or a `${` is malformed.
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


def escape(text: str) -> str:
    """Return the text which `expand` turns back into `text`."""
    return text.replace("${", "$${")
