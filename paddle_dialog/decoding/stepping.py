"""One step of a search: ask the model, apply the logits processors, hold the length limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import paddle

from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.processors import Prefixes
from paddle_dialog.decoding.scores import ScoreTable


@dataclass(frozen=True)
class StepScores:
    """Scores of the next token of N rows.

    Attributes:
        model: the model's own log-probabilities, [N, V].
        search: what the search ranks by: after the processors, and only the end token left at the limit.
        ends: the end token is the best continuation by the processed scores, [N] bool; computed for rows at
            their limit, True elsewhere.
    """

    model: np.ndarray
    search: ScoreTable
    ends: np.ndarray


class Stepper:
    """Feeds prefixes to a model and keeps its state in line with them."""

    def __init__(
        self, model: StepModel, source: paddle.Tensor, lengths: paddle.Tensor, options: SearchOptions
    ) -> None:
        self._model = model
        self._options = options
        self._state = model.encode(source, lengths)
        self._rows = int(source.shape[0])
        self._normalised = bool(getattr(model, "returns_log_probabilities", False))
        self._table, self._processed = ScoreTable(), ScoreTable()

    def follow(self, rows: np.ndarray) -> None:
        """Make row i of the state continue what was row `rows[i]`.

        Args:
            rows: row numbers, [N'].
        """
        if len(rows) == self._rows and np.array_equal(rows, np.arange(self._rows)):
            return
        self._state = self._model.reorder(self._state, paddle.to_tensor(rows.astype(np.int64)))
        self._rows = len(rows)

    def step(self, prefixes: Prefixes) -> StepScores:
        """Score every continuation of the prefixes.

        Args:
            prefixes: what was written so far, one row for each row of the state.

        Returns:
            The scores; they share memory with the next step's.
        """
        if prefixes.length:
            last = prefixes.tokens[:, -1]  # [N]
        else:
            last = np.full(len(prefixes.inputs), self._options.bos_id, dtype=np.int64)
        scores, self._state = self._model.step(paddle.to_tensor(last), self._state)
        self._table.load(scores, self._normalised)
        ends = np.ones(len(last), dtype=bool)
        at_limit = np.flatnonzero(prefixes.limits == prefixes.length)
        if not self._options.processors and not at_limit.size:
            return StepScores(self._table.values, self._table, ends)
        self._processed.copy_from(self._table)
        for process in self._options.processors:
            process(self._processed.values, prefixes)
        if at_limit.size:
            self._force_end(self._processed.values, at_limit, ends)
        return StepScores(self._table.values, self._processed, ends)

    def _force_end(self, values: np.ndarray, rows: np.ndarray, ends: np.ndarray) -> None:
        eos_id = self._options.eos_id
        ends[rows] = values[rows].argmax(axis=1) == eos_id
        kept = values[rows, eos_id]
        values[rows] = -np.inf
        values[rows, eos_id] = kept
