"""The rules of form: as a report on one pair of lines, as the search is held to them, and what the user locks.

A locked character overrides the rules, which hold at the other positions. If they leave a line without any answer,
they are relaxed for this line alone: first a single rule, tried in the order of `RELAXATION_ORDER`; if none suffices,
the first two together, then the first three, and so on. `tone_weight` is a preference and never needs relaxing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import zip_longest

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.config import RulesConfig
from paddle_dialog.tasks.couplet.prompts import TO_SECOND, Direction
from paddle_dialog.text.characters import (
    Tone,
    can_be_level,
    can_be_oblique,
    is_hanzi,
    is_punctuation,
    normalise_line,
    simplified_line,
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
        punctuation_aligned=punctuation(first).keys() == punctuation(second).keys(),
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


RELAXATION_ORDER = ("final_tone", "no_shared_character", "mirror_repeats", "copy_punctuation", "same_length")
FREE = "？"  # in a template, the mark of a position left to the model; it is also made of `?`


@dataclass(frozen=True)
class Rules:
    """The rules of one search."""

    active: frozenset[str] = frozenset()  # those of `RELAXATION_ORDER` that are switched on
    tone_weight: float = 0.0  # nats taken off a hanzi whose tone cannot oppose

    @classmethod
    def of(cls, config: RulesConfig) -> Rules:
        """Make the rules that a recipe switches on."""
        if not config.enabled:
            return cls()
        return cls(frozenset(name for name in RELAXATION_ORDER if getattr(config, name)), config.tone_weight)

    def relaxations(self) -> Iterator[Rules]:
        """Iterate over these rules and the relaxed ones that are tried after them; the last have none active."""
        order = [name for name in RELAXATION_ORDER if name in self.active]
        dropped = [[], *([name] for name in order), *(order[:count] for count in range(2, len(order) + 1))]
        for names in dropped:
            yield Rules(self.active - set(names), self.tone_weight)


def describe(config: RulesConfig) -> str:
    """Describe the rules in a few words, e.g. "no rules" or "rules without final_tone, tone weight 0.5"."""
    if not config.enabled:
        return "no rules"
    off = [name for name in RELAXATION_ORDER if not getattr(config, name)]
    without = f" without {', '.join(off)}" if off else ""
    return f"rules{without}, tone weight {config.tone_weight:g}"


def wanted_final_tone(given: str, direction: Direction) -> Tone:
    """Return the tone that the written line ends on.

    A 下联 ends level, unless the 上联 has no reading that ends otherwise; a 上联 ends oblique, unless the 下联
    can only end so itself.
    """
    final = final_character(given)
    if direction.writes_first:
        return Tone.LEVEL if can_be_oblique(final) and not can_be_level(final) else Tone.OBLIQUE
    return Tone.OBLIQUE if can_be_level(final) and not can_be_oblique(final) else Tone.LEVEL


def broken_rules(
    given: str, written: str, form: Form, rules: Rules, direction: Direction = TO_SECOND
) -> list[str]:
    """Return the rules that a candidate does not keep, in the order of `RELAXATION_ORDER`.

    Args:
        direction: which of the two is the 上联.
    """
    kept = {
        "final_tone": wanted_final_tone(given, direction) in tones(final_character(written)),
        "no_shared_character": not form.shares_character,
        "mirror_repeats": form.repeats_mirrored,
        "copy_punctuation": punctuation(given) == punctuation(written),
        "same_length": form.length_equal,
    }
    return [name for name in RELAXATION_ORDER if name in rules.active and not kept[name]]


def punctuation(line: str) -> dict[int, str]:
    """Return position → mark with which a line answers its own: a question inside it calls for none in return."""
    marks = {place: character for place, character in enumerate(line) if is_punctuation(character)}
    last = len(line) - 1
    # In 77 of 100 training couplets a comma answers it.
    return {place: "，" if mark == "？" and place != last else mark for place, mark in marks.items()}


def read_locks(
    line: str, lock: Mapping[int, str], template: str | None, given: str = "上联"
) -> dict[int, str]:
    """Return the characters that every answer to a line has, in the written form of `simplified_line`.

    Args:
        lock: position (0 is the first) → character.
        template: one character a position, ？ or ? for any, such as ？？？？花更红; blanks are dropped.
    """
    locks: dict[int, str] = {}
    if template is not None:
        written = simplified_line(template)
        if len(written) != len(line):
            raise UserError(
                f"the template '{template[:40]}' has {len(written)} characters and the {given} '{line[:40]}' "
                f"{len(line)}; give one for each, ？ where any may stand",
                "lock_length",
                length=len(line),
            )
        locks = {place: character for place, character in enumerate(written) if character != FREE}
    for place, character in lock.items():
        written = simplified_line(character)
        if not 0 <= place < len(line):
            raise UserError(
                f"lock: position {place} is outside the {given} '{line[:40]}'; it has 0 to {len(line) - 1}"
            )
        if len(written) != 1:
            raise UserError(f"lock: position {place} holds '{character[:40]}'; give exactly one character")
        if written != FREE and locks.setdefault(place, written) != written:
            raise UserError(
                f"position {place} is '{locks[place]}' in the template and '{written}' in lock; take one"
            )
    return locks
