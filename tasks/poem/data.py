"""Reading poems and running text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.poem.forms import FORMS
from paddle_dialog.text.characters import normalise_line

SAMPLE = Path(__file__).with_name("sample.txt")
NEWLINE = "<newline>"  # a vocabulary's file cannot hold a line break
FORM_TOKENS = {name: f"<{name}>" for name in FORMS}


@dataclass(frozen=True, slots=True)
class Poem:
    """One poem; the title may be empty."""

    title: str
    body: str


def read_texts(source: str) -> list[Poem] | str:
    """Read poems, or a text that has no poems in it.

    Args:
        source: `sample` (a few poems that come with the package), or a UTF-8 file, also `.xz` or `.gz`. If
            its first line has a tab, each line must be `title<TAB>body`; else the whole file is one text.

    Returns:
        The poems, normalised; or the text as it is.
    """
    path = SAMPLE if source == "sample" else Path(source)
    lines = [(number, line) for number, line in read_lines(path)]
    first = next((line for _, line in lines if line.strip()), "")
    if not first:
        raise UserError(f"{path}: nothing but blank lines; give poems, title<TAB>body a line, or any text")
    if "\t" not in first:
        return "\n".join(line for _, line in lines)
    return [_parse(path, number, line) for number, line in lines if line.strip()]


def _parse(path: Path, number: int, line: str) -> Poem:
    columns = line.split("\t")
    if len(columns) != 2:
        found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        raise UserError(
            f"{path}:{number}: {found} found; a line must be title<TAB>body, as the first line is"
        )
    title, body = map(normalise_line, columns)
    if not body:
        raise UserError(f"{path}:{number}: the poem is empty; a line must be title<TAB>body")
    return Poem(title, body)


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
