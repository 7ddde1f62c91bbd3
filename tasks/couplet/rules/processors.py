"""The rules of form as logits processors for a batch of lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from paddle_dialog.decoding.processors import FORBIDDEN, Prefixes
from paddle_dialog.decoding.scores import group_starts
from paddle_dialog.text.tones import tones
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.form import final_character
from tasks.couplet.rules.line_plan import LinePlan


class PlannedLines:
    """Holds every row to the plan of its input.

    Args:
        plans: one for each input.
        table: the vocabulary's characters.
    """

    def __init__(self, plans: Sequence[LinePlan], table: CharacterTable) -> None:
        self._plans = plans
        self._table = table
        self._vocabulary = table.vocabulary

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        place = prefixes.length
        for number, rows in rows_of_inputs(prefixes):
            plan = self._plans[number]
            block, tokens = scores[rows], prefixes.tokens[rows]  # [R, V], [R, t]
            ends = block[:, Vocabulary.eos_id].copy() if place >= plan.minimum else None  # [R]
            if place in plan.forced:
                self._allow(block, np.full(len(block), self._vocabulary.id(plan.forced[place])))
            elif plan.exact and place >= plan.minimum:
                block[:] = FORBIDDEN
            elif plan.origin(place) < place:
                self._allow(block, tokens[:, plan.origin(place)])
            else:
                block -= plan.penalties.get(place, plan.beyond)
                if plan.distinct:
                    self._forbid_written(block, tokens)
            if ends is not None:
                block[:, Vocabulary.eos_id] = np.where(self._may_end(plan, tokens), ends, FORBIDDEN)

    def _allow(self, block: np.ndarray, tokens: np.ndarray) -> None:
        """Forbid all but one token [R] of each row."""
        rows = np.arange(len(block))
        kept = block[rows, tokens]
        block[:] = FORBIDDEN
        block[rows, tokens] = kept

    def _forbid_written(self, block: np.ndarray, tokens: np.ndarray) -> None:
        row, column = np.nonzero(self._table.hanzi[tokens])
        block[row, tokens[row, column]] = FORBIDDEN

    def _may_end(self, plan: LinePlan, tokens: np.ndarray) -> np.ndarray:
        """Return whether each prefix may end here by the plan, [R]."""
        if plan.ending is None:
            return np.ones(len(tokens), dtype=bool)
        texts = (plan.text(self._vocabulary.decode(row)) for row in tokens.tolist())
        return np.array([plan.ending in tones(final_character(text)) for text in texts])


class BannedTexts:
    """Forbids what would complete a banned word, even through characters that later positions are bound to hold.

    A character determines later ones where the given line repeats itself, and forced characters stand whatever comes
    before. Considering both keeps the search out of dead ends: with 花花 banned, 花 cannot answer the first 树 of
    树树. A word whose characters are all locked is left alone.

    Args:
        plans: one for each input.
        words: banned words.
        vocabulary: of the ids.
    """

    def __init__(self, plans: Sequence[LinePlan], words: Sequence[str], vocabulary: Vocabulary) -> None:
        self._plans = plans
        self._vocabulary = vocabulary
        self._endings: dict[str, list[int]] = {}
        for word in words:
            if len(word) > 1 and word[-1] in vocabulary:
                self._endings.setdefault(word[:-1], []).append(vocabulary.id(word[-1]))
        self._lengths = sorted({len(start) for start in self._endings})
        self._traps = [_traps(plan, words) for plan in plans]

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        place = prefixes.length
        for number, rows in rows_of_inputs(prefixes):
            plan, traps = self._plans[number], self._traps[number]
            block = scores[rows]  # [R, V]
            if None in traps:
                block[:] = FORBIDDEN
                continue
            free = place not in plan.forced and plan.origin(place) == place
            if not free or not (self._endings or place in traps):
                continue
            for row, tokens in enumerate(prefixes.tokens[rows].tolist()):
                text = plan.text(self._vocabulary.decode(tokens))
                block[row, list(self._completions(text, traps.get(place, ())))] = FORBIDDEN

    def _completions(self, text: str, traps: Sequence[dict[int, str]]) -> Iterator[int]:
        """Iterate over the ids that may not follow a text."""
        for length in self._lengths:
            if length <= len(text):
                yield from self._endings.get(text[len(text) - length :], ())
        for trap in traps:
            *before, (_, last) = sorted(trap.items())
            if last in self._vocabulary and all(text[place] == char for place, char in before):
                yield self._vocabulary.id(last)


def rows_of_inputs(prefixes: Prefixes) -> Iterator[tuple[int, slice]]:
    """Iterate over the rows of each input, which stand together, with the number of the input."""
    starts = group_starts(prefixes.inputs).tolist()
    for start, stop in zip(starts, [*starts[1:], len(prefixes.inputs)], strict=True):
        yield int(prefixes.inputs[start]), slice(start, stop)


def _traps(plan: LinePlan, words: Sequence[str]) -> dict[int | None, list[dict[int, str]]]:
    """Return the combinations of free characters that, with forced and repeated ones, make up a banned word.

    Returns:
        The last position of each → position → character; under None the words that are forced as a whole.
    """
    traps: dict[int | None, list[dict[int, str]]] = {}
    bound = [p for p in range(plan.minimum) if p in plan.forced or plan.origin(p) != p]
    repeats = any(place not in plan.forced for place in bound)
    characters = set(plan.forced.values())
    for word in words:
        if not repeats and characters.isdisjoint(word):
            continue
        starts = {
            s for p in bound for s in range(p - len(word) + 1, p + 1) if 0 <= s <= plan.minimum - len(word)
        }
        for start in sorted(starts):
            places = range(start, start + len(word))
            if all(place in plan.locked for place in places):
                continue
            trap = _trap(plan, word, start)
            if trap is not None:
                traps.setdefault(max(trap, default=None), []).append(trap)
    return traps


def _trap(plan: LinePlan, word: str, start: int) -> dict[int, str] | None:
    """Return the characters at free positions that would put the word at `start`; None if it cannot stand there."""
    trap: dict[int, str] = {}
    for place, char in enumerate(word, start):
        if place in plan.forced:
            if plan.forced[place] != char:
                return None
        elif trap.setdefault(plan.origin(place), char) != char:
            return None
    return trap
