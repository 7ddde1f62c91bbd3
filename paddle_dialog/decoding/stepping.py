"""One step of a search: run the model, apply the logits processors, enforce the length limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paddle_dialog.decoding.arrays import to_model
from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.processors import Prefixes, allow_only
from paddle_dialog.decoding.scores import ScoreTable


@dataclass(frozen=True)
class StepScores:
    """Scores of the next token of N rows; the next step overwrites them.

    Attributes:
        table: what the search ranks by: after the processors, and only the end token left at the limit; it
            still knows the model's own log-probabilities.
        ends: the end token is the best continuation by the processed scores, [N] bool; computed for rows at
            their limit, True elsewhere.
    """

    table: ScoreTable
    ends: np.ndarray


class Stepper:
    """Feeds prefixes to a model and keeps its state in line with them."""

    def __init__(
        self, model: StepModel, source: np.ndarray, lengths: np.ndarray, options: SearchOptions
    ) -> None:
        self._model = model
        self._options = options
        self._state = model.encode(to_model(model, source), to_model(model, lengths))
        self._owners = np.arange(len(source))
        self._reorder_within = getattr(model, "reorder_within", None)
        self._normalised = bool(getattr(model, "returns_log_probabilities", False))
        self._table = ScoreTable()

    def follow(self, rows: np.ndarray, owners: np.ndarray) -> None:
        """Make row i of the state continue what was row `rows[i]`.

        Args:
            rows: row numbers, [N'].
            owners: input each row i belongs to from now on, [N'].
        """
        same_inputs = len(owners) == len(self._owners) and np.array_equal(owners, self._owners)
        self._owners = owners
        if same_inputs and np.array_equal(rows, np.arange(len(rows))):
            return
        reorder = self._reorder_within if same_inputs and self._reorder_within else self._model.reorder
        self._state = reorder(self._state, to_model(self._model, rows.astype(np.int64)))

    def step(self, prefixes: Prefixes) -> StepScores:
        """Score every continuation of the prefixes.

        Args:
            prefixes: what was written so far, one row for each row of the state.

        Returns:
            The scores.
        """
        if prefixes.length:
            last = prefixes.tokens[:, -1]  # [N]
        else:
            last = np.full(len(prefixes.inputs), self._options.bos_id, dtype=np.int64)
        scores, self._state = self._model.step(to_model(self._model, last), self._state)
        self._table.load(scores, self._normalised)
        for process in self._options.processors:
            process(self._table.values, prefixes)
        ends = np.ones(len(last), dtype=bool)
        at_limit = np.flatnonzero(prefixes.limits == prefixes.length)
        if at_limit.size:
            self._force_end(self._table.values, at_limit, ends)
        return StepScores(self._table, ends)

    def _force_end(self, values: np.ndarray, rows: np.ndarray, ends: np.ndarray) -> None:
        eos_id = self._options.eos_id
        for row in rows.tolist():
            ends[row] = values[row].argmax() == eos_id
            allow_only(values, row, eos_id)
