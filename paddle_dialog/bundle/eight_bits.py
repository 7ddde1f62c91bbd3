"""Weights in 8 bits a number: the matrices of a network, with a scale for each row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

SCALE = ".scale"  # suffix of the names of a matrix's scales
_STEPS = 127  # of a number's magnitude


def packed(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights with their matrices in 8 bits; the largest number of each row is 127 steps.

    Args:
        weights: by structured name, float.

    Returns:
        For a matrix [R, C] int8 [R, C] and, under its name and `.scale`, float32 [R, 1]; matrices of one column and
        all that are no matrices as float32.
    """
    tensors: dict[str, np.ndarray] = {}
    for name, values in weights.items():
        if values.ndim != 2 or values.shape[1] == 1:
            tensors[name] = values.astype(np.float32)
            continue
        largest = np.abs(values).max(axis=1, keepdims=True).astype(np.float32)
        scale = np.maximum(largest, 1e-9) / _STEPS  # [R, 1]
        tensors[name], tensors[name + SCALE] = np.rint(values / scale).astype(np.int8), scale
    return tensors


def unpacked(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights that `packed` was given, as near as 8 bits come; others as they are.

    Raises:
        KeyError: the scales of a matrix are missing.
    """
    matrices = {name for name, values in tensors.items() if values.dtype == np.int8}
    scales = {name + SCALE for name in matrices}
    return {
        name: values * tensors[name + SCALE] if name in matrices else values
        for name, values in tensors.items()
        if name not in scales
    }
