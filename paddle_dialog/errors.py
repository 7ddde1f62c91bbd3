"""The exception whose message is for users."""

from __future__ import annotations


class UserError(Exception):
    """Bad input, configuration or environment, reported in one plain sentence.

    The message says what is wrong, where (file, line number, key, value) and what would be right. The tools
    print it on stderr without a traceback and exit with status 2.

    Args:
        message: the sentence.
        code: its name, where the server's page has words of its own for it.
        values: what those words need.
    """

    def __init__(self, message: str = "", code: str | None = None, **values: str | int) -> None:
        super().__init__(message)
        self.code = code
        self.values = values


class UnsupportedModelError(Exception):
    """The NumPy steps do not support a network; the message says why."""
