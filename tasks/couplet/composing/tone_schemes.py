"""The tones of a 上联 that answers nothing.

A 上联 ends oblique (仄). Backwards from there the ends of its clauses go level, level, oblique, oblique, … (马蹄韵).
Within a clause of four to seven characters the even places alternate, and its last three
characters are not all of one tone (三平尾, 三仄尾). In longer clauses the rhythm is free, and only the end is bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from paddle_dialog.text.tones import Tone, tones
from tasks.couplet.composing.patterns import Pattern
from tasks.couplet.form import clauses

FINAL, ENDS, ALTERNATING = "first_final_tone", "clause_ends", "alternating_tones"
TONE_RULES = (ALTERNATING, ENDS, FINAL)  # in the order in which they are given up
_OTHER = {Tone.LEVEL: Tone.OBLIQUE, Tone.OBLIQUE: Tone.LEVEL}
_BACKWARDS = (Tone.OBLIQUE, Tone.LEVEL, Tone.LEVEL, Tone.OBLIQUE)  # and again
_ALTERNATES = range(4, 8)  # sizes of clauses

Scheme = Mapping[int, Tone]  # position in the line → the tone it must have


def schemes(pattern: Pattern, rules: Sequence[str] = TONE_RULES) -> list[Scheme]:
    """Return all ways to set the tones of a 上联 under some of `TONE_RULES`."""
    choices = []
    for number, places in enumerate(pattern.positions):
        last = number == len(pattern.clauses) - 1
        end = _end_tone(pattern, number) if (FINAL if last else ENDS) in rules else None
        choices.append(_clause_schemes(places, end, ALTERNATING in rules))
    return [{place: tone for part in parts for place, tone in part.items()} for parts in product(*choices)]


def conflicts(scheme: Scheme, fixed: Mapping[int, str]) -> int:
    """Return how many fixed characters have no reading of the tone their position must have."""
    return sum(place in fixed and tone not in tones(fixed[place]) for place, tone in scheme.items())


def broken_tones(line: str) -> list[str]:
    """Return those of `TONE_RULES` that a 上联 does not keep; readings that fit count.

    Args:
        line: normalised.
    """
    parts = clauses(line)
    if not parts:
        return []
    pattern = Pattern(tuple(map(len, parts)))
    ends = [_end_tone(pattern, number) in tones(part[-1]) for number, part in enumerate(parts)]
    kept = {
        ALTERNATING: all(map(_alternates, parts)),
        ENDS: all(ends[:-1]),
        FINAL: ends[-1],
    }
    return [rule for rule in TONE_RULES if not kept[rule]]


def _end_tone(pattern: Pattern, number: int) -> Tone:
    return _BACKWARDS[(len(pattern.clauses) - 1 - number) % len(_BACKWARDS)]


def _clause_schemes(places: Sequence[int], end: Tone | None, alternates: bool) -> list[dict[int, Tone]]:
    bound = {} if end is None else {places[-1]: end}
    size = len(places)
    if not alternates or size not in _ALTERNATES:
        return [bound]
    last = size - size % 2 - 1  # index of the last even place
    found = []
    for tone in Tone:
        if last == size - 1 and end not in (None, tone):
            continue
        scheme = {places[i]: tone if (last - i) % 4 == 0 else _OTHER[tone] for i in range(last, 0, -2)}
        if last != size - 1 and tone is end:
            scheme[places[-3]] = _OTHER[tone]
        found.append(scheme | bound)
    return found


def _alternates(clause: str) -> bool:
    even = clause[1::2]
    if len(clause) not in _ALTERNATES:
        return True
    return any(
        all((tone if i % 2 == 0 else _OTHER[tone]) in tones(char) for i, char in enumerate(even))
        for tone in Tone
    )
