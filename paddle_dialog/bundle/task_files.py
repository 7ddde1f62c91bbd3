"""The files that a task adds to a bundle."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from paddle_dialog.errors import UserError
from paddle_dialog.models.arrays.operators import NotServed


@contextmanager
def reading(where: str, what: str, mend: str) -> Iterator[None]:
    """Say in one sentence that the file `where` holds no `what`, whatever shows it inside, and what will `mend` it.

    Raises:
        UserError: the content is no safetensors or xz file, a name is missing, a value is wrong, or the array form
            does not support the network of these weights.
    """
    try:
        yield
    except (SafetensorError, lzma.LZMAError, KeyError, ValueError, NotServed) as error:
        raise UserError(f"{where}: holds no {what} ({error}); {mend}") from error
