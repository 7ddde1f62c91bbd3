"""What a whole couplet is asked to be, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi, normalise_line
from paddle_dialog.text.simplified import simplified_line
from tasks.couplet.composing.patterns import Pattern, wanted_patterns
from tasks.couplet.composing.themes import Theme, read_themes

LONGEST_NAME = 8  # characters: four couplets
LONGEST_SCROLL = 8
MOST_COUPLETS = 20


@dataclass(frozen=True)
class Wish:
    """A checked request.

    Args:
        themes: what the couplets speak of; none is anything.
        name: characters to be placed: 上 下 上 下 …, a pair to each couplet.
        place: of the name's characters in their lines, 0 is the first, punctuation not counted.
        patterns: allowed ones, with their frequencies.
        count: proposals, each of as many couplets as the name needs.
        scroll: the 横批 of all; None leaves it to the model.
    """

    themes: tuple[Theme, ...]
    name: str
    place: int
    patterns: Mapping[Pattern, int]
    count: int
    scroll: str | None

    @property
    def parts(self) -> list[str]:
        """The one or two characters of the name in each couplet of a proposal; one couplet without a name."""
        return [self.name[start : start + 2] for start in range(0, len(self.name), 2)] or [""]


def read_wish(
    theme: str = "",
    name: str = "",
    place: int = 1,
    length: int | None = None,
    pattern: str | None = None,
    count: int = 5,
    scroll: str | None = None,
) -> Wish:
    """Check a request, whose parts are the arguments of `ComposingPredictor.compose`.

    Raises:
        UserError: something cannot be met, or two things contradict each other.
    """
    themes, patterns, characters = read_themes(theme), wanted_patterns(length, pattern), _name(name)
    if not 1 <= count <= MOST_COUPLETS:
        raise UserError(f"count is {count}; give 1 to {MOST_COUPLETS}")
    fitting = {p: n for p, n in patterns.items() if 1 <= place <= p.length}
    if not fitting:
        raise UserError(
            f"place {place} is outside the line; it has {max(p.length for p in patterns)} characters"
        )
    if place != 1 and not characters:
        raise UserError(f"place {place} says where a name stands; give a name too")
    _check_room(themes, characters, fitting)
    return Wish(themes, characters, place - 1, fitting, count, None if scroll is None else _scroll(scroll))


def _name(name: str) -> str:
    written = simplified_line(name)
    if name and not written:
        raise UserError("the name is empty; give Chinese characters, e.g. 李明")
    if not all(map(is_hanzi, written)):
        raise UserError(f"the name '{name[:40]}' has a character that is not Chinese; give one such as 李明")
    if len(written) > LONGEST_NAME:
        raise UserError(
            f"the name '{written[:20]}' has {len(written)} characters; up to {LONGEST_NAME} can be placed, "
            "two in each couplet"
        )
    return written


def _scroll(scroll: str) -> str:
    written = normalise_line(scroll)
    if not written or not all(map(is_hanzi, written)):
        raise UserError(f"the 横批 '{scroll[:40]}' is not Chinese; give four characters such as 万象更新")
    if len(written) > LONGEST_SCROLL:
        raise UserError(
            f"the 横批 '{written[:20]}' has {len(written)} characters; four are usual, {LONGEST_SCROLL} the most"
        )
    return written


def _check_room(themes: tuple[Theme, ...], name: str, patterns: Mapping[Pattern, int]) -> None:
    """Refuse a word that no clause can hold beside a character of the name."""
    widest = max(max(pattern.clauses) for pattern in patterns) - bool(name)
    for theme in themes:
        if min(map(len, theme.words)) > widest:
            shape = next(iter(patterns))
            beside = f" beside a character of the name '{name}'" if name else ""
            raise UserError(
                f"theme: '{theme.name}' finds no room{beside} in a line of {shape}; ask for a longer line"
            )
