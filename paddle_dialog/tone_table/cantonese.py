"""The tone classes of Cantonese readings, by ToJyutping, a development requirement."""

from __future__ import annotations

import ToJyutping

from paddle_dialog.text.tones import Tone

_STOPS = "ptk"


def cantonese_tones(char: str) -> frozenset[Tone]:
    """Return the tone classes of all Cantonese readings of a character, none where it has no reading."""
    return frozenset(map(_tone, _readings(char)))


def has_entering_tone(char: str) -> bool:
    """Return whether one of the two commonest readings of a character ends in p, t or k."""
    return any(reading[-2] in _STOPS for reading in _readings(char)[:2])


def _readings(char: str) -> list[str]:
    ((_, readings),) = ToJyutping.get_jyutping_candidates(char)
    # A few readings have two syllables (哩 jing1 lei5, the English mile) and so no single tone.
    return [reading for reading in readings if " " not in reading]


def _tone(reading: str) -> Tone:
    is_level = reading[-1] in "14" and reading[-2] not in _STOPS
    return Tone.LEVEL if is_level else Tone.OBLIQUE
