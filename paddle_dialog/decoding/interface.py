"""What a model offers to the search, and what the search returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np


class StepModel(Protocol):
    """A model that predicts one token at a time from a state; arrays in and out, whatever computes inside.

    Only the model looks inside the state. A row of it belongs to one prefix of one input. A step may overwrite the
    state it is given, which is not used again. A model whose `step` returns log-probabilities instead of logits (a
    pointer-generator over an extended vocabulary) says so with `returns_log_probabilities = True`; its V may
    then exceed the vocabulary and differ from batch to batch, and it must accept ids of that range.
    """

    def encode(self, source: np.ndarray, lengths: np.ndarray, /) -> Any:
        """Read the inputs once.

        Args:
            source: ids, [B, S] int64, or [B, S, k] where the model reads k numbers (ids, roles, …) at each
                position; the search only hands them on.
            lengths: real length of each row, [B] int64.

        Returns:
            The state before the first token, B rows.
        """

    def step(self, token: np.ndarray, state: Any, /) -> tuple[np.ndarray, Any]:
        """Append one token to every row.

        Args:
            token: the previous token of each row (first the start token), [N] int64.
            state: N rows.

        Returns:
            Logits or log-probabilities of the next token, [N, V], and the new state.
        """

    def reorder(self, state: Any, index: np.ndarray, /) -> Any:
        """Take rows of the state: to repeat an input, to follow the beams, to drop what is finished.

        Args:
            state: N rows.
            index: row numbers, [N'] int64, in any order, repeats allowed.

        Returns:
            The state with N' rows.
        """


@runtime_checkable
class TextReader(Protocol):
    """A step model that reads given texts whole, and shows its states over them."""

    def text_states(
        self, source: np.ndarray, lengths: np.ndarray, texts: Sequence[Sequence[int]], inputs: np.ndarray, /
    ) -> list[np.ndarray]:
        """Read texts, teacher-forced.

        Args:
            source: as for `StepModel.encode`, [B, S].
            lengths: [B] int64.
            texts: M texts, ids without start and end token.
            inputs: the row of the source that each text belongs to [M].

        Returns:
            For each text of T tokens what predicts each of them and the end token, float32 [T + 1, D].
        """

    def state_log_probs(self, states: Sequence[np.ndarray], texts: Sequence[Sequence[int]], /) -> np.ndarray:
        """Return log p(text, end | input), float64 [M], from the states of the texts."""


@dataclass(frozen=True)
class Hypothesis:
    """One text the search found."""

    tokens: list[int]  # ids without start and end token
    # The model's own log-probability of the text and its end token; logits processors, temperature and length
    # penalty do not touch it.
    log_prob: float
    score: float  # log_prob / (len(tokens) + 1), the end token counted; this is what users are shown
    finished: bool  # the model ended the text itself; False when it was cut at the length limit
    # What the candidates of one input are ordered by: the log-probability after the logits processors, divided
    # by the configured length penalty. Equals `log_prob` without either.
    rank_score: float

    @classmethod
    def of(cls, tokens: list[int], log_prob: float, finished: bool, rank_score: float) -> Hypothesis:
        """Build a hypothesis and its length-normalised score."""
        return cls(tokens, log_prob, log_prob / (len(tokens) + 1), finished, rank_score)
