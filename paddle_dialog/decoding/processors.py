"""Logits processors: rules that change the log-probabilities of a step before the search looks at them.

They work in place on numpy, on every row at once or row by row; -inf forbids a token. A processor may only
lower scores: early stopping relies on it, so to prefer a token, penalise all others. Rules that differ
between the inputs of a batch take one entry for each input and find a row's input in `Prefixes.inputs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from paddle_dialog.text.vocabulary import Vocabulary

FORBIDDEN = -np.inf


@dataclass(frozen=True)
class Prefixes:
    """What has been written so far in the rows of a step, all of the same length."""

    tokens: np.ndarray  # ids without the start token, [N, t] int64
    inputs: np.ndarray  # number of the input in the batch each row belongs to, [N]
    limits: np.ndarray  # length limit of each row's input in tokens, [N]

    @property
    def length(self) -> int:
        """Tokens written so far, the same in every row."""
        return int(self.tokens.shape[1])


class LogitsProcessor(Protocol):
    """A rule of the search."""

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """Lower scores in place.

        Args:
            scores: log-probabilities of the next token, [N, V].
            prefixes: N rows.
        """


class ForcedPrefix:
    """Make every text begin with given tokens.

    Args:
        prefixes: ids, one list for each input, possibly empty.
    """

    def __init__(self, prefixes: Sequence[Sequence[int]]) -> None:
        self._prefixes = prefixes

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """Forbid all but the next token of each beginning."""
        for row, number in enumerate(prefixes.inputs.tolist()):
            if prefixes.length < len(self._prefixes[number]):
                allow_only(scores, row, self._prefixes[number][prefixes.length])


class ForbiddenTokens:
    """Never write some tokens, at any position or at given ones.

    Args:
        tokens: ids, one list for each input; a single list serves every input.
        positions: where they are forbidden, one list for each entry of `tokens`; everywhere by default.
    """

    def __init__(
        self, tokens: Sequence[Sequence[int]], positions: Sequence[Sequence[int]] | None = None
    ) -> None:
        self._tokens = [np.array(sorted(set(ids)), dtype=np.int64) for ids in tokens]
        self._positions = None if positions is None else [frozenset(p) for p in positions]

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """Forbid the tokens."""
        if len(self._tokens) == 1 and self._positions is None:
            scores[:, self._tokens[0]] = FORBIDDEN
            return
        for row, number in enumerate(prefixes.inputs.tolist()):
            entry = number if len(self._tokens) > 1 else 0
            if self._positions is None or prefixes.length in self._positions[entry]:
                scores[row, self._tokens[entry]] = FORBIDDEN


# An answer never contains padding, unknown or begin.
NO_SPECIAL_TOKENS = ForbiddenTokens([[Vocabulary.pad_id, Vocabulary.unk_id, Vocabulary.bos_id]])


class MinimumLength:
    """Forbid the end token before a text has enough tokens.

    Args:
        length: tokens without the end token.
    """

    def __init__(self, length: int) -> None:
        self._length = length

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """Forbid the end token in short texts."""
        if prefixes.length < self._length:
            scores[:, Vocabulary.eos_id] = FORBIDDEN


class NoRepeatNGram:
    """Forbid the token that would complete an n-gram the text already holds.

    Args:
        size: n, >= 1; with 1 no token is written twice.

    Raises:
        ValueError: n is below 1.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"the size of an n-gram is {size}, it must be 1 or more")
        self._size = size

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """Forbid what would repeat."""
        grams = prefixes.length - self._size + 1  # complete n-grams so far
        if grams < 1:
            return
        context = self._size - 1
        # [N, grams, n]
        windows = np.lib.stride_tricks.sliding_window_view(prefixes.tokens, self._size, axis=1)
        tail = prefixes.tokens[:, prefixes.length - context :]  # [N, n - 1]
        row, place = np.nonzero((windows[:, :, :context] == tail[:, None, :]).all(axis=2))
        scores[row, windows[row, place, context]] = FORBIDDEN


def allow_only(scores: np.ndarray, row: int, token: int) -> None:
    """Forbid every token of a row but one, whose score stays.

    Args:
        scores: [N, V], changed in place.
        row: row number.
        token: id.
    """
    kept = scores[row, token]
    scores[row] = FORBIDDEN
    scores[row, token] = kept
