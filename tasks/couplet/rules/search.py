"""Search under the rules of form, relaxing them for the lines they leave without any answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import LogitsProcessor
from paddle_dialog.errors import UserError
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.constraints import Rules, relaxations
from tasks.couplet.rules.direction import TO_SECOND, Direction
from tasks.couplet.rules.line_plan import LinePlan, Planner
from tasks.couplet.rules.processors import BannedTexts, PlannedLines

# Searches for some lines of the batch, given by number, under logits processors made for them.
Search = Callable[[Sequence[int], Sequence[LogitsProcessor]], list[list[Hypothesis]]]
Candidate = tuple[str, Hypothesis]  # the answer as shown, and how it was written


@dataclass(frozen=True)
class Found:
    """What the search found for one line.

    Args:
        candidates: best first, one at least.
        plan: that they keep.
        active: the rules that were not relaxed.
    """

    candidates: list[Candidate]
    plan: LinePlan
    active: frozenset[str]


def search_by_rules(
    lines: Sequence[str],
    locks: Sequence[Mapping[int, str]],
    rules: Rules,
    table: CharacterTable,
    search: Search,
    direction: Direction = TO_SECOND,
) -> list[Found]:
    """Find the candidates of a batch.

    Args:
        lines: that are given, normalised.
        locks: for each line, position → character.
        rules: of form.
        table: the characters of the model's vocabulary.
        search: the engine.
        direction: which line is given.

    Returns:
        At least one candidate for each line.

    Raises:
        UserError: the vocabulary has no character that could be written.
    """
    planner = Planner(table, rules.tone_weight, rules.banned, direction)
    found: dict[int, Found] = {}
    pending = list(range(len(lines)))
    for dropped in relaxations(rules.active):
        active = rules.active - dropped
        plans = [planner.plan(lines[number], active, locks[number]) for number in pending]
        answers = search(pending, processors_of(plans, active, rules.banned, table))
        for number, plan, hypotheses in zip(pending, plans, answers, strict=True):
            if hypotheses:
                found[number] = Found(texts_of(hypotheses, plan, table), plan, active)
        pending = [number for number in pending if number not in found]
        if not pending:
            return [found[number] for number in range(len(lines))]
    raise UserError(
        f"the model finds no {direction.written} for '{lines[pending[0]]}' even without rules; its vocabulary has "
        f"only {len(table.vocabulary)} tokens"
    )


def texts_of(hypotheses: Sequence[Hypothesis], plan: LinePlan, table: CharacterTable) -> list[Candidate]:
    """Return hypotheses of one line with their texts."""
    return [(plan.text(table.vocabulary.decode(h.tokens)), h) for h in hypotheses]


def processors_of(
    plans: Sequence[LinePlan], active: frozenset[str], banned: Sequence[str], table: CharacterTable
) -> list[LogitsProcessor]:
    """Return what holds a batch to its plans, made under the same active rules."""
    processors: list[LogitsProcessor] = [PlannedLines(plans, table)]
    if "banned_words" in active:
        processors.append(BannedTexts(plans, banned, table.vocabulary))
    return processors
