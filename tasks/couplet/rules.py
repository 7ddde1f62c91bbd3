"""The rules of form for the line that answers another: which hold, which may be relaxed, and what the user locks.

A locked character overrides the rules, which hold at the other positions. If they leave a line without any answer,
they are relaxed for this line alone: first a single rule, tried in the order of `RELAXATION_ORDER`; if none suffices,
the first two together, then the first three, and so on. `tone_weight` is a preference and never needs relaxing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.config import RulesConfig
from paddle_dialog.tasks.couplet.direction import TO_SECOND, Direction
from paddle_dialog.tasks.couplet.form import Form, final_character
from paddle_dialog.text.characters import is_punctuation, simplified_line, tones

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


def broken_rules(
    given: str, written: str, form: Form, rules: Rules, direction: Direction = TO_SECOND
) -> list[str]:
    """Return the rules that a candidate does not keep, in the order of `RELAXATION_ORDER`.

    Args:
        direction: which of the two is the 上联.
    """
    kept = {
        "final_tone": direction.wanted_final_tone(given) in tones(final_character(written)),
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


def parse_template(template: str, line: str, given: str = "上联") -> dict[int, str]:
    """Return the locked characters of a template such as ？？？？花更红, by their positions from 0.

    Args:
        template: one character a position, ？ or ? for any; blanks are dropped.
    """
    written = simplified_line(template)
    if len(written) != len(line):
        raise UserError(
            f"the template '{template[:40]}' has {len(written)} characters and the {given} '{line[:40]}' "
            f"{len(line)}; give one for each, ？ where any may stand",
            "lock_length",
            length=len(line),
        )
    return {place: character for place, character in enumerate(written) if character != FREE}


def check_locks(lock: Mapping[int, str], line: str, given: str = "上联") -> dict[int, str]:
    """Return locked characters in the written form of `simplified_line`.

    Args:
        lock: position (0 is the first) → character.
    """
    locks = {}
    for place, character in lock.items():
        written = simplified_line(character)
        if not 0 <= place < len(line):
            raise UserError(
                f"lock: position {place} is outside the {given} '{line[:40]}'; it has 0 to {len(line) - 1}"
            )
        if len(written) != 1:
            raise UserError(f"lock: position {place} holds '{character[:40]}'; give exactly one character")
        if written != FREE:
            locks[place] = written
    return locks
