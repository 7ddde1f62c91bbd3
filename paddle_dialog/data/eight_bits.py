"""Weights whose matrices are stored in 8 bits a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

SCALE = ".scale"  # suffix of the names of a matrix's scales
_STEPS = 127  # of a number's magnitude in 8 bits


def quantize(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights with their matrices in 8 bits; the largest number of each row is 127 steps.

    Returns:
        For a matrix [R, C] int8 [R, C] and, under its name and `.scale`, float32 [R, 1]; matrices of one column and
        all that are not matrices as they are.
    """
    tensors: dict[str, np.ndarray] = {}
    for name, values in weights.items():
        if values.ndim != 2 or values.shape[1] == 1:
            tensors[name] = values
            continue
        largest = np.abs(values).max(axis=1, keepdims=True).astype(np.float32)
        scale = np.maximum(largest, 1e-9) / _STEPS  # [R, 1]
        tensors[name], tensors[name + SCALE] = np.rint(values / scale).astype(np.int8), scale
    return tensors


class EightBitWeights(Mapping[str, np.ndarray]):
    """The weights that `quantize` was given, as near as 8 bits come; others as they are.

    A matrix becomes float32 each time it is asked for, so that the weights take a quarter of the memory.

    Attributes:
        scales: name → the number that each row of the matrix is multiplied by [R, 1].
    """

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self.scales = {
            name: tensors[name + SCALE] for name, values in tensors.items() if values.dtype == np.int8
        }
        scales = {name + SCALE for name in self.scales}
        self._values = {name: values for name, values in tensors.items() if name not in scales}

    def __getitem__(self, name: str) -> np.ndarray:
        values = self._values[name]
        return values * self.scales[name] if name in self.scales else values

    def values_of(self, name: str) -> np.ndarray:
        """Return a matrix as it is stored."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
