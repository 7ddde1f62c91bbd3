"""The plan of a poem: a form, given characters, and the rules that can hold with them.

Given characters stand whatever the rules say. Where no pattern of tones has room for them, `tones` is relaxed:
only the ends of the even lines keep theirs. Where those among them that end even lines have no rhyme in common or
stand there twice, `rhyme` is relaxed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.tones import can_be_level, can_be_oblique
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.poem.forms import Form
from tasks.poem.rhymes import NAMES, common_rhymes, rhymes

ANY, LEVEL, OBLIQUE = range(3)
_NEEDS = {"中": ANY, "平": LEVEL, "仄": OBLIQUE}


class CharacterTable:
    """Properties of the V tokens of a vocabulary that the forms need.

    Attributes:
        serves: those that may stand where `ANY`, `LEVEL` or `OBLIQUE` is needed, bool [3, V].
        rhymes: which of the thirty rhymes each has, bool [V, 30].
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        tokens = vocabulary.tokens
        hanzi = np.array([len(token) == 1 and is_hanzi(token) for token in tokens])
        level, oblique = (
            np.array([len(token) == 1 and can_be(token) for token in tokens])
            for can_be in (can_be_level, can_be_oblique)
        )
        self.vocabulary = vocabulary
        self.serves = np.stack([hanzi, hanzi & level, hanzi & oblique])
        self.rhymes = np.array([[name in rhymes(token) for name in NAMES] for token in tokens])


@dataclass(frozen=True)
class FormPlan:
    """The plan of one poem.

    Args:
        form: its form.
        given: position in the poem → character.
        needs: for each pattern of tones what each position of the P of a poem needs, int [patterns, P]; given
            characters need nothing.
        relaxed: rules that the given characters cannot keep.
        rhymes: those that the given ends leave, bool [30]; None where the ends need not rhyme.
    """

    form: Form
    given: Mapping[int, str]
    needs: np.ndarray
    relaxed: tuple[str, ...]
    rhymes: np.ndarray | None


def make_plan(form: Form, given: Mapping[int, str], tones: bool = True, rhyme: bool = True) -> FormPlan:
    """Plan a poem that has given characters.

    Args:
        form: the poem's.
        given: position → character.
        tones: hold it to a pattern of tones.
        rhyme: hold it to a rhyme.
    """
    needs = np.full((4, form.size), ANY)
    hanzi = [place for place in range(form.size) if form.mark(place) is None]
    for row, pattern in zip(needs, form.patterns, strict=True):
        row[hanzi] = [_NEEDS[wanted] for wanted in pattern]
    can_be = (is_hanzi, can_be_level, can_be_oblique)
    fits = [all(can_be[row[place]](char) for place, char in given.items()) for row in needs]
    ends = "".join(given[place] for place in form.rhyming_places if place in given)
    left = common_rhymes(ends) if len(set(ends)) == len(ends) else frozenset()
    relaxed = ["tones"] * (tones and not any(fits)) + ["rhyme"] * (rhyme and not left)
    if tones and any(fits):
        needs = needs[fits]
    else:
        needs = np.full((1, form.size), ANY)
        if rhyme and left:
            needs[:, form.rhyming_places] = LEVEL
    needs[:, list(given)] = ANY
    kept = np.array([name in left for name in NAMES])
    return FormPlan(form, given, needs, tuple(relaxed), kept if rhyme and left else None)


def place_beginning(form: Form, text: str) -> dict[int, str]:
    """Place the hanzi of a beginning in a form; its punctuation is left out.

    Raises:
        UserError: it has more characters than the form, or others than hanzi and punctuation.
    """
    characters = [char for char in text if is_hanzi(char)]
    if len(characters) > form.lines * form.length:
        raise UserError(
            f"the beginning has {len(characters)} hanzi, and a {form.name} has {form.lines * form.length}; shorten it"
        )
    return {place + place // form.length: char for place, char in enumerate(characters)}


def place_acrostic(form: Form, text: str) -> dict[int, str]:
    """Place the first characters of the lines in a form.

    Raises:
        UserError: they are not as many hanzi as the form has lines.
    """
    if len(text) != form.lines or not all(map(is_hanzi, text)):
        raise UserError(
            f"'{text[:20]}' cannot begin the lines of a {form.name}; give {form.lines} hanzi, one for each line"
        )
    return {line * (form.length + 1): char for line, char in enumerate(text)}
