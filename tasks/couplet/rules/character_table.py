"""Properties of characters that the rules of form need, computed once for every token of a vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from paddle_dialog.text.characters import is_hanzi, is_punctuation
from paddle_dialog.text.tones import can_be_level, can_be_oblique
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.couplet.marks import MARKS


class CharacterTable:
    """Properties of the tokens of a vocabulary, each computed when first asked for.

    Attributes:
        vocabulary: V tokens, one character each but for the special ones.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @cached_property
    def special(self) -> np.ndarray:
        """Padding, unknown, begin and end, and the marks of the source, bool [V]."""
        return np.array([token in SPECIAL_TOKENS or token in MARKS for token in self.vocabulary.tokens])

    @cached_property
    def hanzi(self) -> np.ndarray:
        """Chinese characters, bool [V]."""
        return self._where(is_hanzi)

    @cached_property
    def punctuation(self) -> np.ndarray:
        """Punctuation marks, bool [V]."""
        return self._where(is_punctuation)

    @cached_property
    def level(self) -> np.ndarray:
        """Characters with a level reading (平), bool [V]."""
        return self._where(can_be_level)

    @cached_property
    def oblique(self) -> np.ndarray:
        """Characters with an oblique reading (仄), bool [V]."""
        return self._where(can_be_oblique)

    def _where(self, holds: Callable[[str], bool]) -> np.ndarray:
        return np.array([len(token) == 1 and holds(token) for token in self.vocabulary.tokens])
