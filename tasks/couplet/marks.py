"""Marks in the encoder's source that tell the uses of one network apart.

They follow the line, so its characters stay at the positions of the target's (`model.aligned_input`); without a mark
the source asks for the 下联 of a modern couplet.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddle_dialog.text.vocabulary import Vocabulary

BLANK = "<blank>"  # a position of a template where any character may stand
FIRST = "<first>"  # asks for the 上联 of a 下联
COMPOSE = "<compose>"  # asks for the 上联 of a template; the characters of a theme follow
VERSE = "<verse>"  # asks for lines as in classical verse (律诗)
MARKS = (BLANK, FIRST, COMPOSE, VERSE)


def knows_marks(vocabulary: Vocabulary) -> bool:
    """Return whether a model with this vocabulary was trained for all uses."""
    return all(mark in vocabulary for mark in MARKS)


def second_source(vocabulary: Vocabulary, first: str, verse: bool = False) -> list[int]:
    """Return the source, without end token, that asks for the 下联 of a 上联."""
    return vocabulary.encode([*first, *_style(verse)])


def first_source(vocabulary: Vocabulary, second: str, verse: bool = False) -> list[int]:
    """Return the source, without end token, that asks for the 上联 of a 下联."""
    return vocabulary.encode([*second, FIRST, *_style(verse)])


def compose_source(
    vocabulary: Vocabulary, template: Sequence[str | None], theme: str = "", verse: bool = False
) -> list[int]:
    """Return the source, without end token, that asks for a 上联 made from nothing.

    Args:
        vocabulary: of the model.
        template: each position's character, or None where any may stand.
        theme: characters of the words that the couplet should speak of, one after the other.
        verse: as in classical verse.
    """
    shape = [BLANK if character is None else character for character in template]
    return vocabulary.encode([*shape, COMPOSE, *theme, *_style(verse)])


def with_marks(vocabulary: Vocabulary) -> Vocabulary:
    """Return the vocabulary with those marks at its end that it lacks."""
    missing = [mark for mark in MARKS if mark not in vocabulary]
    return Vocabulary([*vocabulary, *missing]) if missing else vocabulary


def _style(verse: bool) -> list[str]:
    return [VERSE] if verse else []
