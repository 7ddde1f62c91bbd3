"""The forms as a logits processor: the characters that may follow a prefix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.decoding.processors import FORBIDDEN, Prefixes
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.poem.form_plan import LEVEL, OBLIQUE, CharacterTable, FormPlan


class HeldForm:
    """Holds every row to the plan of its input.

    A character may stand where some pattern of tones that the row still keeps has room for it. The first line may
    rhyme too: it then ends level. There, a character with readings of both tones would leave open whether it does.

    Args:
        plans: one for each input.
        table: the vocabulary's characters.
    """

    def __init__(self, plans: Sequence[FormPlan], table: CharacterTable) -> None:
        self._plans, self._table = plans, table

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        for row, number in enumerate(prefixes.inputs.tolist()):
            plan, tokens = self._plans[number], prefixes.tokens[row]
            if len(tokens) == plan.form.size:
                allowed = np.zeros(scores.shape[1], dtype=bool)
                allowed[Vocabulary.eos_id] = True
            else:
                allowed = self._allowed(plan, tokens)
            scores[row, ~allowed] = FORBIDDEN

    def _allowed(self, plan: FormPlan, tokens: np.ndarray) -> np.ndarray:
        """Return which tokens may follow `tokens` [t], bool [V]."""
        place, form, serves = len(tokens), plan.form, self._table.serves
        fixed = plan.given.get(place, form.mark(place))
        if fixed is not None:
            allowed = np.zeros(serves.shape[1], dtype=bool)
            allowed[self._table.vocabulary.id(fixed)] = True
            return allowed
        bound = np.array([form.mark(p) is not None or p in plan.given for p in range(place)], dtype=bool)
        alive = (bound | serves[plan.needs[:, :place], tokens]).all(axis=1)  # [patterns]
        allowed = serves[plan.needs[alive, place]].any(axis=0)  # [V]
        if plan.rhymes is None:
            return allowed
        if place == form.length - 1:
            rhyming = (self._table.rhymes & plan.rhymes).any(axis=1)
            allowed &= ~(serves[LEVEL] & serves[OBLIQUE]) & (~serves[LEVEL] | rhyming)
        elif place in form.rhyming_places:
            allowed &= self._rhyming(plan, plan.rhymes, tokens)
        return allowed

    def _rhyming(self, plan: FormPlan, rhymes: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Return which tokens rhyme with the line ends before and differ from them, bool [V]."""
        first, serves = plan.form.length - 1, self._table.serves
        places = [place for place in plan.form.rhyming_places if place < len(tokens)]
        if serves[LEVEL, tokens[first]] and not serves[OBLIQUE, tokens[first]]:
            places.append(first)
        free = tokens[[place for place in places if place not in plan.given]]
        left = rhymes & self._table.rhymes[free].all(axis=0)  # [30]
        allowed = (self._table.rhymes & left).any(axis=1)
        given = [
            self._table.vocabulary.id(plan.given[p]) for p in plan.form.rhyming_places if p in plan.given
        ]
        allowed[[*tokens[places], *given]] = False
        return allowed
