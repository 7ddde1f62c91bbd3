"""The rules of form worked out for one given line, and held in the search as a logits processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paddle_dialog.decoding.processors import FORBIDDEN, Prefixes
from paddle_dialog.decoding.scores import group_starts
from paddle_dialog.tasks.couplet.prompts import MARKS, TO_SECOND, Direction
from paddle_dialog.tasks.couplet.rules import Rules, final_character, punctuation, wanted_final_tone
from paddle_dialog.text.characters import Tone, can_be_level, can_be_oblique, is_hanzi, is_punctuation, tones
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


class CharacterTable:
    """Properties of the V tokens of a vocabulary, bool [V] each.

    Attributes:
        special: padding, unknown, begin and end, and the marks of the source.
        level: characters with a level reading (平).
        oblique: characters with an oblique reading (仄).
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        def where(holds: Callable[[str], bool]) -> np.ndarray:
            return np.array([len(token) == 1 and holds(token) for token in vocabulary.tokens])

        self.vocabulary = vocabulary
        self.special = np.array([token in SPECIAL_TOKENS or token in MARKS for token in vocabulary.tokens])
        self.hanzi, self.punctuation = where(is_hanzi), where(is_punctuation)
        self.level, self.oblique = where(can_be_level), where(can_be_oblique)


@dataclass(frozen=True)
class LinePlan:
    """The rules for one line, by position of the answer."""

    # Position → the only character allowed there; one outside the vocabulary is written as the unknown
    # token and shown as itself.
    forced: Mapping[int, str]
    # For each position of the given line the first one that must hold the same hanzi, or itself.
    origins: Sequence[int]
    # For each position that is neither forced nor a repetition, the penalty of each token, [V]; inf forbids.
    penalties: Mapping[int, np.ndarray]
    beyond: np.ndarray  # the same for positions past the end of the given line
    minimum: int  # least number of characters of the answer
    exact: bool  # whether that is also the greatest number
    distinct: bool  # hanzi are equal only where `origins` says so
    ending: Tone | None  # tone the answer must end on, where only its end shows which character is the last

    def origin(self, place: int) -> int:
        """Return the first position that holds the same character as this one."""
        return self.origins[place] if place < len(self.origins) else place

    def penalty(self, tokens: Sequence[int]) -> float:
        """Return the nats that the rules take off a text."""
        return sum(
            float(self.penalties.get(place, self.beyond)[token])
            for place, token in enumerate(tokens)
            if place not in self.forced and self.origin(place) == place
        )

    def text(self, tokens: Sequence[str]) -> str:
        """Return the answer of the tokens that were written."""
        return "".join(self.forced.get(place, token) for place, token in enumerate(tokens))


class Planner:
    """Makes the plans of the lines that are answered under the same rules."""

    def __init__(self, table: CharacterTable, rules: Rules, direction: Direction = TO_SECOND) -> None:
        self._table, self._rules, self._direction = table, rules, direction
        self._active, weight = rules.active, np.float32(rules.tone_weight)
        never = table.special | table.punctuation if "copy_punctuation" in self._active else table.special
        self._never = np.where(never, np.float32(np.inf), np.float32(0.0))  # [V]
        # Tone → the weight on every token without a reading of it, [V].
        self._unlike = {Tone.LEVEL: ~table.level * weight, Tone.OBLIQUE: ~table.oblique * weight}

    def plan(self, line: str, locked: Mapping[int, str]) -> LinePlan:
        """Plan one line."""
        active = self._active
        forced = dict(punctuation(line)) if "copy_punctuation" in active else {}
        forced.update(locked)
        origins = list(range(len(line)))
        if "mirror_repeats" in active:
            _mirror(line, locked, forced, origins)
        exact, copied = "same_length" in active, "copy_punctuation" in active
        final = _final_place(len(line), forced) if exact else None
        members: dict[int, list[int]] = {}
        for place, origin in enumerate(origins):
            if place not in forced:
                members.setdefault(origin, []).append(place)
        last = max([0, *forced, *(place for place, origin in enumerate(origins) if place != origin)])
        common = self._common_penalty(line, forced)
        ends_open = "final_tone" in active and not (exact and copied)
        return LinePlan(
            forced=forced,
            origins=origins,
            penalties={
                origin: self._penalty(common, line, places, final) for origin, places in members.items()
            },
            beyond=common,
            minimum=len(line) if exact else last + 1,
            exact=exact,
            distinct="mirror_repeats" in active,
            ending=wanted_final_tone(line, self._direction) if ends_open else None,
        )

    def _common_penalty(self, line: str, forced: Mapping[int, str]) -> np.ndarray:
        """Return the penalty that holds at every position of the answer, [V]."""
        excluded = {char for char in line if "no_shared_character" in self._active and is_hanzi(char)}
        if "mirror_repeats" in self._active:
            excluded |= {char for char in forced.values() if is_hanzi(char)}
        penalty = self._never.copy()
        penalty[[index for index in self._table.vocabulary.encode(excluded) if index]] = np.inf
        return penalty

    def _penalty(self, common: np.ndarray, line: str, places: Sequence[int], final: int | None) -> np.ndarray:
        """Return the sum for positions that hold the same character, inf where one of them forbids it, [V]."""
        table, penalty = self._table, common.copy()
        for place in places:
            level, oblique = can_be_level(line[place]), can_be_oblique(line[place])
            if level != oblique:
                penalty += self._unlike[Tone.OBLIQUE if level else Tone.LEVEL]
        if "mirror_repeats" in self._active and any(is_hanzi(line[place]) for place in places):
            penalty[~table.hanzi] = np.inf
        if final in places and "final_tone" in self._active:
            fits = table.level if wanted_final_tone(line, self._direction) is Tone.LEVEL else table.oblique
            # Where punctuation is free, a mark may follow the last hanzi here.
            penalty[~(fits if "copy_punctuation" in self._active else fits | table.punctuation)] = np.inf
        return penalty


def _mirror(line: str, locked: Mapping[int, str], forced: dict[int, str], origins: list[int]) -> None:
    """Tie the positions of each hanzi of the line; one locked hanzi locks all of its positions."""
    places: dict[str, list[int]] = {}
    for place, char in enumerate(line):
        if is_hanzi(char):
            places.setdefault(char, []).append(place)
    for same in places.values():
        chosen = {locked[place] for place in same if place in locked}
        open_places = [place for place in same if place not in locked]
        if len(chosen) == 1 and all(is_hanzi(char) for char in chosen):
            forced.update(dict.fromkeys(open_places, *chosen))
        for place in open_places:
            origins[place] = open_places[0]


def _final_place(length: int, forced: Mapping[int, str]) -> int | None:
    """Return the last position without punctuation."""
    return next((p for p in reversed(range(length)) if not is_punctuation(forced.get(p, "一"))), None)


class PlannedLines:
    """Holds every row to the plan of its input."""

    def __init__(self, plans: Sequence[LinePlan], table: CharacterTable) -> None:
        self._plans = plans
        self._table = table
        self._vocabulary = table.vocabulary

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
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


def rows_of_inputs(prefixes: Prefixes) -> Iterator[tuple[int, slice]]:
    """Iterate over the rows of each input, which are neighbours, with the number of the input."""
    starts = group_starts(prefixes.inputs).tolist()
    for start, stop in zip(starts, [*starts[1:], len(prefixes.inputs)], strict=True):
        yield int(prefixes.inputs[start]), slice(start, stop)
