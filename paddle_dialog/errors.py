"""The exception whose message is for users."""


class UserError(Exception):
    """Bad input, configuration or environment, reported in one plain sentence.

    The message says what is wrong, where (file, line number, key, value) and what would be right. The tools
    print it on stderr without a traceback and exit with status 2.
    """


class UnsupportedModelError(Exception):
    """The NumPy steps do not support a network; the message says why."""
