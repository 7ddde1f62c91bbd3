"""The rules of form worked out for one given line: which characters may stand where in its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paddle_dialog.text.characters import is_hanzi, is_punctuation
from paddle_dialog.text.tones import Tone, can_be_level, can_be_oblique
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.constraints import punctuation
from tasks.couplet.rules.direction import TO_SECOND, Direction


@dataclass(frozen=True)
class LinePlan:
    """The rules for one line, by position of the answer.

    Attributes:
        locked: position → character fixed by the user.
        forced: position → the only character that may stand there, the locked ones included; one outside the
            vocabulary is written as the unknown token and shown as itself.
        origins: for each position of the given line the first one that must hold the same hanzi, or itself.
        penalties: for each position that is neither forced nor a repetition, the penalty of each token, [V]; inf
            forbids.
        beyond: the same for positions past the end of the given line.
        minimum: least number of characters of the answer.
        exact: whether that is also the greatest number.
        distinct: hanzi are equal only where `origins` says so.
        ending: tone the answer must end on, where only its end shows which character is the last.
    """

    locked: Mapping[int, str]
    forced: Mapping[int, str]
    origins: Sequence[int]
    penalties: Mapping[int, np.ndarray]
    beyond: np.ndarray
    minimum: int
    exact: bool
    distinct: bool
    ending: Tone | None

    def origin(self, place: int) -> int:
        """Return the first position that holds the same character as this one."""
        return self.origins[place] if place < len(self.origins) else place

    def text(self, tokens: Sequence[str]) -> str:
        """Return the answer of the tokens that were written."""
        return "".join(self.forced.get(place, token) for place, token in enumerate(tokens))


class Planner:
    """Makes the plans of the lines that one predictor answers.

    Args:
        table: the vocabulary's characters.
        tone_weight: nats, >= 0.
        banned: banned words; those of one character are simply forbidden tokens.
        direction: which line is given.
    """

    def __init__(
        self,
        table: CharacterTable,
        tone_weight: float,
        banned: Sequence[str],
        direction: Direction = TO_SECOND,
    ) -> None:
        self.table = table
        self.direction = direction
        self._tone_weight = tone_weight
        vocabulary = table.vocabulary
        self._banned_ids = [vocabulary.id(word) for word in banned if len(word) == 1 and word in vocabulary]

    def plan(self, line: str, active: frozenset[str], locked: Mapping[int, str]) -> LinePlan:
        """Plan one line.

        Args:
            line: the given one, normalised, T characters.
            active: the rules to hold it to.
            locked: position → character.
        """
        forced = dict(punctuation(line)) if "copy_punctuation" in active else {}
        forced.update(locked)
        origins = list(range(len(line)))
        if "mirror_repeats" in active:
            _mirror(line, locked, forced, origins)
        exact, copied = "same_length" in active, "copy_punctuation" in active
        ends_open = "final_tone" in active and not (exact and copied)
        final = _final_place(len(line), forced) if exact else None
        penalties = _Penalties(self, line, active, forced)
        members: dict[int, list[int]] = {}
        for place, origin in enumerate(origins):
            if place not in forced:
                members.setdefault(origin, []).append(place)
        last = max([0, *forced, *(place for place, origin in enumerate(origins) if place != origin)])
        return LinePlan(
            locked=locked,
            forced=forced,
            origins=origins,
            penalties={origin: penalties.of(places, final) for origin, places in members.items()},
            beyond=penalties.of([], None),
            minimum=len(line) if exact else last + 1,
            exact=exact,
            distinct="mirror_repeats" in active,
            ending=self.direction.wanted_final_tone(line) if ends_open else None,
        )

    def never(self, active: frozenset[str]) -> np.ndarray:
        """Return the tokens that may stand nowhere, bool [V]."""
        never = self.table.special.copy()
        if "copy_punctuation" in active:
            never |= self.table.punctuation
        if "banned_words" in active:
            never[self._banned_ids] = True
        return never

    @cached_property
    def unlike(self) -> dict[Tone, np.ndarray]:
        """Tone → the weight on every token without a reading of it, float32 [V]."""
        weight = np.float32(self._tone_weight)
        return {Tone.LEVEL: ~self.table.level * weight, Tone.OBLIQUE: ~self.table.oblique * weight}

    @property
    def weighs_tones(self) -> bool:
        """Whether tones are preferred at all."""
        return self._tone_weight > 0


class _Penalties:
    """The penalties of one line; positions under the same rules share them."""

    def __init__(
        self, planner: Planner, line: str, active: frozenset[str], forced: Mapping[int, str]
    ) -> None:
        self._planner = planner
        self._line = line
        self._active = active
        self._never = planner.never(active)
        excluded = {char for char in line if "no_shared_character" in active and is_hanzi(char)}
        if "mirror_repeats" in active:
            excluded |= {char for char in forced.values() if is_hanzi(char)}
        self._excluded = [index for index in planner.table.vocabulary.encode(excluded) if index]
        self._known: dict[object, np.ndarray] = {}

    def of(self, places: Sequence[int], final: int | None) -> np.ndarray:
        """Return the sum for positions that hold the same character, inf where one of them forbids it, [V]."""
        hanzi_only = "mirror_repeats" in self._active and any(is_hanzi(self._line[place]) for place in places)
        wanted = tuple(sorted(self._wanted(places), key=lambda tone: tone.value))
        ends = final in places
        key = hanzi_only, wanted, ends
        if key not in self._known:
            self._known[key] = self._computed(hanzi_only, wanted, ends)
        return self._known[key]

    def _wanted(self, places: Sequence[int]) -> Iterator[Tone]:
        """Iterate over the opposite tones of the places with only one tone."""
        if not self._planner.weighs_tones:
            return
        for place in places:
            level, oblique = can_be_level(self._line[place]), can_be_oblique(self._line[place])
            if level != oblique:
                yield Tone.OBLIQUE if level else Tone.LEVEL

    def _computed(self, hanzi_only: bool, wanted: Sequence[Tone], ends: bool) -> np.ndarray:
        table = self._planner.table
        penalty = np.zeros(len(table.vocabulary), dtype=np.float32)  # [V]
        for tone in wanted:
            penalty += self._planner.unlike[tone]
        penalty[self._never] = np.inf
        penalty[self._excluded] = np.inf
        if hanzi_only:
            penalty[~table.hanzi] = np.inf
        if ends and "final_tone" in self._active:
            level = self._planner.direction.wanted_final_tone(self._line) is Tone.LEVEL
            fits = table.level if level else table.oblique
            # Where punctuation is free, a mark may stand here, after the last hanzi.
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
