"""The rules of form for the line that answers another, and how they are relaxed where they cannot be met.

A locked character overrides the rules, which hold at the other positions. If they leave a line without any answer,
they are relaxed for this line alone: first a single rule, tried in the order of `RELAXATION_ORDER`; if none suffices,
the first two together, then the first three, and so on. `tone_weight` is a preference and never needs relaxing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from paddle_dialog.data.files import read_lines
from paddle_dialog.text.characters import is_punctuation, normalise_line
from paddle_dialog.text.tones import tones
from tasks.couplet.config import RulesConfig
from tasks.couplet.rules.direction import TO_SECOND, Direction
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
        """Make the rules that a recipe switches on, with the banned words that `read_banned_words` returns."""
        if not config.enabled:
            return cls()
        switched = {name for name in RELAXATION_ORDER if name != "banned_words" and getattr(config, name)}
        words = {"banned_words"} if banned else set()
        return cls(frozenset(switched | words), config.tone_weight, tuple(banned))


def describe(config: RulesConfig) -> str:
    """Describe the rules in a few words, e.g. "no rules" or "rules without final_tone, tone weight 0.5"."""
    if not config.enabled:
        return "no rules"
    off = [name for name in RELAXATION_ORDER if name != "banned_words" and not getattr(config, name)]
    words = "rules" + (f" without {', '.join(off)}" if off else "")
    words += f", tone weight {config.tone_weight:g}"
    return words + (", banned words" if config.banned_words else "")


def relaxations(active: frozenset[str]) -> Iterator[frozenset[str]]:
    """Iterate over the sets of rules to drop, in order; the first is empty, the last holds all."""
    order = [name for name in RELAXATION_ORDER if name in active]
    yield frozenset()
    yield from (frozenset([name]) for name in order)
    yield from (frozenset(order[:count]) for count in range(2, len(order) + 1))


def broken_rules(
    given: str, written: str, form: Form, rules: Rules, direction: Direction = TO_SECOND
) -> list[str]:
    """Return the rules that a candidate does not keep, in the order of `RELAXATION_ORDER`.

    Args:
        given: the line that is answered, normalised.
        written: the candidate.
        form: the report on the pair.
        rules: those switched off are ignored.
        direction: which of the two is the 上联.
    """
    kept = {
        "final_tone": direction.wanted_final_tone(given) in tones(final_character(written)),
        "no_shared_character": not form.shares_character,
        "mirror_repeats": form.repeats_mirrored,
        "copy_punctuation": punctuation(given) == punctuation(written),
        "same_length": form.length_equal,
        "banned_words": not any(word in written for word in rules.banned),
    }
    return [name for name in RELAXATION_ORDER if name in rules.active and not kept[name]]


def punctuation(line: str) -> dict[int, str]:
    """Return position → mark with which a line answers its own: a question inside it calls for none in return."""
    marks = {place: character for place, character in enumerate(line) if is_punctuation(character)}
    last = len(line) - 1
    # In 77 of 100 training couplets a comma answers it.
    return {place: "，" if mark == "？" and place != last else mark for place, mark in marks.items()}


def read_banned_words(path: str | None) -> list[str]:
    """Return the banned words of a file, one a line; none without a file.

    Raises:
        UserError: the file cannot be read.
    """
    return [] if path is None else banned_words(line for _, line in read_lines(path))


def banned_words(lines: Iterable[str]) -> list[str]:
    """Return every word once, in the written form of `normalise_line`; blank lines are skipped."""
    return list(dict.fromkeys(word for word in map(normalise_line, lines) if word))
