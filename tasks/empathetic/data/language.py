"""The language of a model: how its texts are read and written, and the emotions it knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from paddle_dialog.errors import UserError
from paddle_dialog.text.language import LanguageName
from tasks.empathetic.data.pieces import PIECES, join_pieces, piece_splitter
from tasks.empathetic.data.tokenise import detokenise, tokenise
from tasks.empathetic.emotion.labels import CHINESE_EMOTIONS, EMOTIONS

REMEMBERED_TURNS = 1 << 16  # a turn occurs in many contexts of a corpus

Tokens = Sequence[str]


@dataclass(frozen=True, eq=False)
class Language:
    """One language, made once and handed on.

    Args:
        name: as in the setting `language`.
        emotions: that a model of it predicts.
        tokenise: one turn to tokens.
        detokenise: tokens of a reply to readable text.
        units: tokens to what figures count: words, or the characters of pieces.
        stock_phrase: the units of what listeners say too often.
        opening: how many units begin a reply alike, for `common_openings`; 0 where that is not reported.
        pairs: one turn to what conversations are compared by; None where that is its tokens.

    Attributes:
        tokens_of: `tokenise` with a memory, which `forget` empties.
    """

    name: LanguageName
    emotions: tuple[str, ...]
    tokenise: Callable[[str], Tokens]
    detokenise: Callable[[Iterable[str]], str]
    units: Callable[[Tokens], Tokens]
    stock_phrase: tuple[str, ...]
    opening: int = 0
    pairs: Callable[[str], Tokens] | None = None
    tokens_of: Callable[[str], tuple[str, ...]] = field(init=False)
    _memory: Any = field(init=False)  # the same, as functools knows it

    def __post_init__(self) -> None:
        split = self.tokenise
        remembering = lru_cache(maxsize=REMEMBERED_TURNS)(lambda turn: tuple(split(turn)))
        object.__setattr__(self, "tokens_of", remembering)
        object.__setattr__(self, "_memory", remembering)

    def terms(self, turn: str) -> Tokens:
        """Return what a turn is compared by with those of other conversations."""
        return self.tokens_of(turn) if self.pairs is None else self.pairs(turn)

    def remembered(self) -> int:
        """Return how many turns `tokens_of` remembers."""
        return int(self._memory.cache_info().currsize)

    def forget(self) -> None:
        """Empty its memory, which a server must not keep for every user."""
        self._memory.cache_clear()


ENGLISH = Language(
    "en",
    EMOTIONS,
    tokenise,
    detokenise,
    units=lambda tokens: tokens,
    stock_phrase=("sorry", "to", "hear"),
)
_RUNS = re.compile(r"[\u4e00-\u9fff]+|[a-z0-9]+")


def character_pairs(turn: str) -> list[str]:
    """Return each two neighbouring hanzi of a Chinese turn, a hanzi that stands alone, and words of other letters.

    The pieces of two turns on one thing are often cut at different places; pairs are not.
    """
    pairs = []
    for run in _RUNS.findall(turn.lower()):
        if run[0] < "\u4e00" or len(run) == 1:
            pairs.append(run)
        else:
            pairs += [run[place : place + 2] for place in range(len(run) - 1)]
    return pairs


def make_language(name: LanguageName, pieces: bytes | None) -> Language:
    """Return the language of a setting.

    Args:
        name: of the language.
        pieces: the model of the pieces of Chinese; None for English.

    Raises:
        UserError: the pieces are missing or faulty, or the package that reads them is.
    """
    if name == "en":
        return ENGLISH
    if pieces is None:
        raise UserError(f"these weights have no {PIECES}, which a Chinese model needs; take another bundle")
    return Language(
        "zh",
        CHINESE_EMOTIONS,
        piece_splitter(pieces),
        join_pieces,
        units=lambda tokens: tuple(join_pieces(tokens)),
        stock_phrase=tuple("理解你"),
        opening=4,
        pairs=character_pairs,
    )
