"""The inputs that the rows of a state belong to, so that data of an input need not be kept for each row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class RowInputs(NamedTuple):
    """The inputs of N rows, as places in a grid of B inputs and R rows each."""

    inputs: np.ndarray  # [N] number of the input, 0 to B - 1
    slots: np.ndarray  # [N] number among the rows of the input, 0 to R - 1
    shape: tuple[int, int]  # B and R
    is_full: bool  # the rows fill the grid in order; the search keeps the rows of an input together

    @classmethod
    def of(cls, inputs: np.ndarray, count: int) -> RowInputs:
        """Return the places of rows in any order.

        Args:
            inputs: input of each row, [N].
            count: B.
        """
        order = np.argsort(inputs, kind="stable")  # [N]
        ordered = inputs[order]
        slots = np.empty_like(order)
        slots[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        size = int(slots.max(initial=0)) + 1
        is_full = len(inputs) == count * size and bool(np.all(inputs[1:] >= inputs[:-1]))
        return cls(inputs, slots, (count, size), is_full)

    def take(self, index: np.ndarray) -> tuple[RowInputs, np.ndarray]:
        """Return the places of the rows `index` [M], and the inputs that are left, by their former numbers [B']."""
        left, inputs = np.unique(self.inputs[index], return_inverse=True)
        return RowInputs.of(inputs, len(left)), left

    def spread(self, rows: np.ndarray) -> np.ndarray:
        """Return rows [N, D] as a grid [B, R, D], zero where there is no row."""
        if self.is_full:
            return rows.reshape(*self.shape, -1)
        grid = np.zeros((*self.shape, rows.shape[1]), dtype=rows.dtype)
        grid[self.inputs, self.slots] = rows
        return grid

    def collect(self, grid: np.ndarray) -> np.ndarray:
        """Return the rows [N, D] of a grid [B, R, D]."""
        if self.is_full:
            return grid.reshape(-1, grid.shape[2])
        return grid[self.inputs, self.slots]
