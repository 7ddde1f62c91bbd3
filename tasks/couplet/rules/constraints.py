"""The rules of form a 下联 is held to, and what happens to those that cannot be met.

A locked character stands whatever the rules say of it; the rules hold at the other positions. Where they
leave a line no 下联 at all, they are relaxed for this line alone: first one rule, tried in the order of
`RELAXATION_ORDER`; where none suffices, the first two together, then the first three, and so on. ``tone_weight``
only prefers and never stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from paddle_dialog.data.files import read_lines
from paddle_dialog.text.characters import is_punctuation, normalise_line
from paddle_dialog.text.tones import Tone, can_be_level, can_be_oblique, tones
from tasks.couplet.config import RulesConfig
from tasks.couplet.rules.form import Form, final_character

RELAXATION_ORDER = (
    "final_tone",
    "no_shared_character",
    "mirror_repeats",
    "copy_punctuation",
    "same_length",
    "banned_words",
)


@dataclass(frozen=True)
class Rules:
    """The rules of one search.

    Attributes:
        active: those of `RELAXATION_ORDER` that are switched on.
        tone_weight: nats taken off a hanzi whose tone cannot oppose.
        banned: words that are never written, normalised.
    """

    active: frozenset[str] = frozenset()
    tone_weight: float = 0.0
    banned: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: RulesConfig, banned: Sequence[str]) -> Rules:
        """The rules that a recipe switches on, with the words of its file, which `read_banned_words` reads."""
        if not config.enabled:
            return cls()
        switched = {name for name in RELAXATION_ORDER if name != "banned_words" and getattr(config, name)}
        words = {"banned_words"} if banned else set()
        return cls(frozenset(switched | words), config.tone_weight, tuple(banned))


def describe(config: RulesConfig) -> str:
    """The rules in a few words, e.g. "no rules" or "rules without final_tone, tone weight 0.5"."""
    if not config.enabled:
        return "no rules"
    off = [name for name in RELAXATION_ORDER if name != "banned_words" and not getattr(config, name)]
    words = "rules" + (f" without {', '.join(off)}" if off else "")
    words += f", tone weight {config.tone_weight:g}"
    return words + (", banned words" if config.banned_words else "")


def relaxations(active: frozenset[str]) -> Iterator[frozenset[str]]:
    """Sets of rules to drop, in the order in which they are tried; the first is empty, the last holds all."""
    order = [name for name in RELAXATION_ORDER if name in active]
    yield frozenset()
    yield from (frozenset([name]) for name in order)
    yield from (frozenset(order[:count]) for count in range(2, len(order) + 1))


def wanted_final_tone(first: str) -> Tone:
    """The tone a 下联 ends on: level, unless the 上联 has no reading that ends otherwise.

    Args:
        first: 上联, normalised.
    """
    final = final_character(first)
    return Tone.OBLIQUE if can_be_level(final) and not can_be_oblique(final) else Tone.LEVEL


def broken_rules(first: str, second: str, form: Form, rules: Rules) -> list[str]:
    """The rules that a candidate does not keep, in the order of `RELAXATION_ORDER`.

    Args:
        first: 上联, normalised.
        second: 下联.
        form: the report on the pair.
        rules: those that are switched off are not looked at.
    """
    kept = {
        "final_tone": wanted_final_tone(first) in tones(final_character(second)),
        "no_shared_character": not form.shares_character,
        "mirror_repeats": form.repeats_mirrored,
        "copy_punctuation": punctuation(first) == punctuation(second),
        "same_length": form.length_equal,
        "banned_words": not any(word in second for word in rules.banned),
    }
    return [name for name in RELAXATION_ORDER if name in rules.active and not kept[name]]


def punctuation(line: str) -> dict[int, str]:
    """Position → mark of every punctuation mark of a line."""
    return {place: character for place, character in enumerate(line) if is_punctuation(character)}


def read_banned_words(path: str | None) -> list[str]:
    """The banned words of a file, one a line; none without a file.

    Raises:
        UserError: the file cannot be read.
    """
    return [] if path is None else banned_words(line for _, line in read_lines(path))


def banned_words(lines: Iterable[str]) -> list[str]:
    """Every word once, in the written form of `normalise_line`; blank lines are skipped."""
    return list(dict.fromkeys(word for word in map(normalise_line, lines) if word))
