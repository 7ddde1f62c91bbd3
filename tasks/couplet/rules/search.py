"""Search under the rules of form, relaxing them for the lines they leave without any 下联."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import LogitsProcessor
from paddle_dialog.errors import UserError
from tasks.couplet.config import RulesConfig
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.constraints import active_rules, read_banned_words, relaxations
from tasks.couplet.rules.line_plan import LinePlan, Planner
from tasks.couplet.rules.processors import BannedTexts, PlannedLines

# Searches for some lines of the batch, given by number, under logits processors made for just these.
Search = Callable[[Sequence[int], Sequence[LogitsProcessor]], list[list[Hypothesis]]]
Candidate = tuple[str, Hypothesis]  # the 下联 as shown, and how it was written


class RuledSearch:
    """The rules of one config over one vocabulary, ready for any number of batches.

    Args:
        config: the switches; the file of banned words is read at once.
        table: the characters of the model's vocabulary.

    Raises:
        UserError: the file of banned words cannot be read.
    """

    def __init__(self, config: RulesConfig, table: CharacterTable) -> None:
        self.config = replace(config)
        self.active = active_rules(config)
        self.banned = read_banned_words(config.banned_words) if config.enabled and config.banned_words else []
        self._vocabulary = table.vocabulary
        self._table = table
        self._planner = Planner(table, config.tone_weight if config.enabled else 0.0, self.banned)

    def run(
        self, lines: Sequence[str], locks: Sequence[Mapping[int, str]], search: Search
    ) -> list[list[Candidate]]:
        """Find the candidates of a batch.

        Args:
            lines: 上联, normalised.
            locks: for each line, position → character.
            search: the engine.

        Returns:
            At least one candidate for each line, best first.

        Raises:
            UserError: the vocabulary holds nothing that could be written.
        """
        found: list[list[Candidate]] = [[] for _ in lines]
        pending = list(range(len(lines)))
        for dropped in relaxations(self.active):
            active = self.active - dropped
            plans = [self._planner.plan(lines[number], active, locks[number]) for number in pending]
            answers = search(pending, self._processors(plans, active))
            for number, plan, hypotheses in zip(pending, plans, answers, strict=True):
                found[number] = [(plan.text(self._vocabulary.decode(h.tokens)), h) for h in hypotheses]
            pending = [number for number in pending if not found[number]]
            if not pending:
                return found
        raise UserError(
            f"the model finds no 下联 for '{lines[pending[0]]}' even without rules; its vocabulary has only "
            f"{len(self._vocabulary)} tokens"
        )

    def _processors(self, plans: list[LinePlan], active: frozenset[str]) -> list[LogitsProcessor]:
        processors: list[LogitsProcessor] = [PlannedLines(plans, self._table)]
        if "banned_words" in active and self.banned:
            processors.append(BannedTexts(plans, self.banned, self._vocabulary))
        return processors
