"""The rules of form that a couplet keeps or breaks, as a report on one pair of lines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import zip_longest

from paddle_dialog.text.characters import (
    can_be_level,
    can_be_oblique,
    is_hanzi,
    is_punctuation,
    normalise_line,
    tones,
)


@dataclass(frozen=True)
class Form:
    """The rules that a pair keeps; where a character has several readings, the one that fits counts."""

    length_equal: bool  # both lines have the same number of characters, punctuation included
    punctuation_aligned: (
        bool  # it is at the same positions in both; the marks may differ, as question and answer do
    )
    final_level: bool  # the second line ends on a level tone (平), trailing punctuation aside
    final_pair: bool  # the first line ends oblique (仄) and the second level (平)
    # Share in 0–1 of the positions with a hanzi whose two tones can be level against oblique; a position that only
    # one line has, or without a known tone, is not opposed; 0 without any hanzi.
    tone_opposed: float
    repeats_mirrored: bool  # hanzi of the second line equal each other exactly where those of the first do
    shares_character: bool  # the second line uses a hanzi of the first, which is a fault

    def as_dict(self) -> dict[str, bool | float]:
        """Return the fields by name, ready for JSON."""
        return asdict(self)


def form_report(first: str, second: str) -> Form:
    """Report the form of 上联 and 下联, which are compared in the form of `normalise_line`."""
    first, second = normalise_line(first), normalise_line(second)
    final_level = can_be_level(final_character(second))
    return Form(
        length_equal=len(first) == len(second),
        punctuation_aligned=_punctuation_positions(first) == _punctuation_positions(second),
        final_level=final_level,
        final_pair=final_level and can_be_oblique(final_character(first)),
        tone_opposed=_tone_opposed(first, second),
        repeats_mirrored=_repeats(first) == _repeats(second),
        shares_character=any(is_hanzi(char) for char in set(first) & set(second)),
    )


def clauses(line: str) -> list[str]:
    """Return the parts of a line between its punctuation."""
    return "".join(" " if is_punctuation(character) else character for character in line).split()


def tones_can_oppose(one: str, other: str) -> bool:
    """Return whether two characters have readings of which one is level and the other oblique."""
    return (can_be_level(one) and can_be_oblique(other)) or (can_be_oblique(one) and can_be_level(other))


def rhythm_opposed(first: str, second: str) -> bool:
    """Return whether the tones of two lines can be opposed at the even places and the end of each clause.

    So the saying: 一三五不论，二四六分明. Clauses of different lengths are not compared; a place without a hanzi or
    without a known tone counts as opposed.
    """
    return all(
        tones_can_oppose(one[place], other[place])
        for one, other in zip(clauses(first), clauses(second), strict=False)
        if len(one) == len(other)
        for place in {*range(1, len(one), 2), len(one) - 1}
        if tones(one[place]) and tones(other[place])
    )


def final_character(line: str) -> str:
    """Return the last character of a line that is not punctuation, or an empty string."""
    return next((char for char in reversed(line) if not is_punctuation(char)), "")


def _punctuation_positions(line: str) -> list[int]:
    return [position for position, char in enumerate(line) if is_punctuation(char)]


def _tone_opposed(first: str, second: str) -> float:
    opposed = [
        tones_can_oppose(one, other)
        for one, other in zip_longest(first, second, fillvalue="")
        if is_hanzi(one) or is_hanzi(other)
    ]
    return sum(opposed) / len(opposed) if opposed else 0.0


def _repeats(line: str) -> set[tuple[int, ...]]:
    """Return the positions of each hanzi that occurs more than once."""
    positions: dict[str, list[int]] = {}
    for position, char in enumerate(line):
        if is_hanzi(char):
            positions.setdefault(char, []).append(position)
    return {tuple(places) for places in positions.values() if len(places) > 1}
