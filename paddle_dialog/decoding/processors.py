"""Logits processors: rules that change the log-probabilities of a step before the search looks at them.

They work in place on numpy, on every row at once or row by row; -inf forbids a token. A processor may only
lower scores: early stopping relies on it, so to prefer a token, penalise all others. Rules that differ
between the inputs of a batch take one entry for each input and find a row's input in `Prefixes.inputs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from paddle_dialog.text.vocabulary import Vocabulary

FORBIDDEN = -np.inf


@dataclass(frozen=True)
class Prefixes:
    """What has been written so far in the rows of a step, all of the same length.

    Attributes:
        tokens: ids without the start token, [N, t] int64.
        inputs: number of the input in the batch each row belongs to, [N].
        limits: length limit of each row's input in tokens, [N].
    """

    tokens: np.ndarray
    inputs: np.ndarray
    limits: np.ndarray

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
        ...


class ForcedTokens:
    """Allow one token only at given positions (locked characters, copied punctuation)."""

    def __init__(self, tokens: Sequence[Mapping[int, int]]) -> None:
        """Set the tokens.

        Args:
            tokens: for each input, position (0 is the first token) → id.
        """
        self._tokens = tokens

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        for row, number in enumerate(prefixes.inputs.tolist()):
            token = self._tokens[number].get(prefixes.length)
            if token is not None:
                allow_only(scores, row, token)


class ForcedPrefix(ForcedTokens):
    """Make every text begin with given tokens."""

    def __init__(self, prefixes: Sequence[Sequence[int]]) -> None:
        """Set the beginnings.

        Args:
            prefixes: ids, one list for each input, possibly empty.
        """
        super().__init__([dict(enumerate(prefix)) for prefix in prefixes])


class ForbiddenTokens:
    """Never write some tokens, at any position or at given ones."""

    def __init__(
        self,
        tokens: Sequence[Sequence[int]],
        positions: Sequence[Sequence[int]] | None = None,
        penalty: float = np.inf,
    ) -> None:
        """Set the tokens.

        Args:
            tokens: ids, one list for each input; a single list serves every input.
            positions: where they are forbidden, one list for each entry of `tokens`; everywhere by default.
            penalty: subtracted from their scores; a finite one leaves them as a last resort.
        """
        self._penalty = penalty
        self._tokens = [np.unique(np.asarray(ids, dtype=np.int64)) for ids in tokens]
        self._positions = None if positions is None else [frozenset(p) for p in positions]

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        if len(self._tokens) == 1 and self._positions is None:
            scores[:, self._tokens[0]] -= self._penalty
            return
        for row, number in enumerate(prefixes.inputs.tolist()):
            entry = number if len(self._tokens) > 1 else 0
            if self._positions is None or prefixes.length in self._positions[entry]:
                scores[row, self._tokens[entry]] -= self._penalty


# An answer never contains padding, unknown or begin.
NO_SPECIAL_TOKENS = ForbiddenTokens([[Vocabulary.pad_id, Vocabulary.unk_id, Vocabulary.bos_id]])


class PositionPenalties:
    """Subtract a penalty from tokens by position: soft rules such as opposed tones, or hard ones with inf."""

    def __init__(self, penalties: Sequence[Mapping[int, np.ndarray]]) -> None:
        """Set the penalties.

        Args:
            penalties: for each input, position → penalty of each token, >= 0, [V].

        Raises:
            ValueError: a penalty is negative.
        """
        if any((penalty < 0).any() for entry in penalties for penalty in entry.values()):
            raise ValueError("a position penalty is negative; penalise the other tokens instead")
        self._penalties = penalties

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        for row, number in enumerate(prefixes.inputs.tolist()):
            penalty = self._penalties[number].get(prefixes.length)
            if penalty is not None:
                scores[row, : len(penalty)] -= penalty


class MinimumLength:
    """Forbid the end token before a text has enough tokens."""

    def __init__(self, lengths: int | Sequence[int], eos_id: int) -> None:
        """Set the least length.

        Args:
            lengths: tokens without the end token; one number, or one for each input.
            eos_id: end token.
        """
        self._lengths = lengths
        self._eos_id = eos_id

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        lengths = _of_rows(self._lengths, prefixes)  # [N]
        scores[prefixes.length < lengths, self._eos_id] = FORBIDDEN


class ExactLength(MinimumLength):
    """Forbid the end token before, and everything else at, a given length; arguments as for `MinimumLength`."""

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        super().__call__(scores, prefixes)
        for row in np.flatnonzero(prefixes.length >= _of_rows(self._lengths, prefixes)).tolist():
            allow_only(scores, row, self._eos_id)


class BannedWords:
    """Forbid the last token of a word of one or more tokens where the rest of it has just been written."""

    def __init__(self, words: Sequence[Sequence[int]]) -> None:
        """Set the words.

        Args:
            words: ids of each word; empty words are ignored.
        """
        self._endings: dict[tuple[int, ...], list[int]] = {}
        for word in words:
            if word:
                self._endings.setdefault(tuple(word[:-1]), []).append(word[-1])
        self._lengths = sorted({len(start) for start in self._endings})

    def __call__(self, scores: np.ndarray, prefixes: Prefixes) -> None:
        """See `LogitsProcessor`."""
        for length in self._lengths:
            if length > prefixes.length:
                break
            if length == 0:
                scores[:, self._endings[()]] = FORBIDDEN
                continue
            for row, tail in enumerate(prefixes.tokens[:, -length:].tolist()):
                endings = self._endings.get(tuple(tail))
                if endings is not None:
                    scores[row, endings] = FORBIDDEN


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


def _of_rows(values: int | Sequence[int], prefixes: Prefixes) -> np.ndarray:
    """Return one number of each row, [N], from one for all or one for each input."""
    if isinstance(values, int):
        return np.full(len(prefixes.inputs), values)
    return np.asarray(values)[prefixes.inputs]
