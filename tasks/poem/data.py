"""Reading poems and running text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paddle_dialog.data.corpora import POEMS, read_poems
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.poem.forms import FORMS
from paddle_dialog.text.characters import normalise_line, read_as_simplified

TITLES = Path(__file__).with_name("titles.txt")
SAMPLE = Path(__file__).with_name("sample.txt")
NEWLINE = "<newline>"  # a vocabulary's file cannot hold a line break
FORM_TOKENS = {name: f"<{name}>" for name in FORMS}


@dataclass(frozen=True, slots=True)
class Poem:
    """One poem; the title may be empty."""

    title: str
    body: str


def read_texts(source: str, running: bool = False) -> list[Poem] | str:
    """Read poems, in one of the forms of `read_poems`, or a running text.

    Args:
        source: `sample` (a few poems that come with the package), or a UTF-8 file, also `.xz` or `.gz`.
        running: whether the whole file is one text.

    Returns:
        The poems, normalised and in simplified characters; or the text as it is.

    Raises:
        UserError: the file cannot be read, or something in it is not a poem.
    """
    path = SAMPLE if source == "sample" else Path(source)
    if running:
        return read_as_simplified("\n".join(line for _, line in read_lines(path)))
    poems = []
    for line, *texts in read_poems(path):
        title, body = (read_as_simplified(normalise_line(text)) for text in texts)
        if not body:
            raise UserError(f"{path}:{line}: the poem is empty; give {POEMS}")
        poems.append(Poem(title, body))
    if not poems:
        raise UserError(f"{path}: no poem in this file; give {POEMS}")
    return poems


def classical_title(title: str) -> str | None:
    """Return the title that a poem is written to: of `titles.txt` if a third of it is of today, else itself.

    None where classical verse has nothing of the kind.
    """
    known = max(
        (word for word in _titles() if word in title and 3 * len(word) >= len(title)), key=len, default=None
    )
    return title if known is None else _titles()[known]


@cache
def _titles() -> dict[str, str | None]:
    rows = TITLES.read_text(encoding="utf-8").splitlines()
    parts = [row.partition(":") for row in rows if not row.startswith("#")]
    return {word: title.strip() or None for words, _, title in parts for word in words.split()}


def limit_length(poems: Sequence[Poem], limit: int) -> tuple[list[Poem], str]:
    """Skip the poems of more than `limit` characters; return the others, and a note for the log."""
    kept = [poem for poem in poems if len(poem.body) <= limit]
    if not kept:
        raise UserError(f"data.max_length: every poem has more than {limit} characters; set it higher")
    count = len(poems) - len(kept)
    return kept, f"{len(kept):,} poems, {count:,} others skipped as longer than {limit} characters"


def characters(text: str) -> list[str]:
    """Split a text into characters as the vocabulary has them."""
    return [NEWLINE if char == "\n" else char for char in text]
