"""Search under the rules of form, relaxing them for the lines they leave without any 下联."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import LogitsProcessor
from paddle_dialog.errors import UserError
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.constraints import Rules, relaxations
from tasks.couplet.rules.line_plan import LinePlan, Planner
from tasks.couplet.rules.processors import BannedTexts, PlannedLines

# Searches for some lines of the batch, given by number, under logits processors made for them.
Search = Callable[[Sequence[int], Sequence[LogitsProcessor]], list[list[Hypothesis]]]
Candidate = tuple[str, Hypothesis]  # the 下联 as shown, and how it was written


def search_by_rules(
    lines: Sequence[str],
    locks: Sequence[Mapping[int, str]],
    rules: Rules,
    table: CharacterTable,
    search: Search,
) -> list[list[Candidate]]:
    """Find the candidates of a batch.

    Args:
        lines: 上联, normalised.
        locks: for each line, position → character.
        rules: of form.
        table: the characters of the model's vocabulary.
        search: the engine.

    Returns:
        At least one candidate for each line, best first.

    Raises:
        UserError: the vocabulary has no character that could be written.
    """
    planner = Planner(table, rules.tone_weight, rules.banned)
    found: list[list[Candidate]] = [[] for _ in lines]
    pending = list(range(len(lines)))
    for dropped in relaxations(rules.active):
        active = rules.active - dropped
        plans = [planner.plan(lines[number], active, locks[number]) for number in pending]
        answers = search(pending, _processors(plans, active, rules.banned, table))
        for number, plan, hypotheses in zip(pending, plans, answers, strict=True):
            found[number] = [(plan.text(table.vocabulary.decode(h.tokens)), h) for h in hypotheses]
        pending = [number for number in pending if not found[number]]
        if not pending:
            return found
    raise UserError(
        f"the model finds no 下联 for '{lines[pending[0]]}' even without rules; its vocabulary has only "
        f"{len(table.vocabulary)} tokens"
    )


def _processors(
    plans: Sequence[LinePlan], active: frozenset[str], banned: Sequence[str], table: CharacterTable
) -> list[LogitsProcessor]:
    processors: list[LogitsProcessor] = [PlannedLines(plans, table)]
    if "banned_words" in active:
        processors.append(BannedTexts(plans, banned, table.vocabulary))
    return processors
