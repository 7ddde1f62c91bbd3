"""Sinusoidal position vectors as an array."""

from __future__ import annotations

import numpy as np


def sinusoids(*, max_length: int, width: int) -> np.ndarray:
    """Compute the sinusoidal position vectors of Vaswani et al. (2017), section 3.5.

    PE(pos, 2i) = sin(pos / 10000^(2i / width)), PE(pos, 2i + 1) = cos(pos / 10000^(2i / width)).

    Args:
        width: vector size; if odd, the last sine has no cosine.

    Returns:
        float32 [max_length, width].
    """
    positions = np.arange(max_length, dtype=np.float64)[:, None]  # [T, 1]
    exponents = np.arange(0, width, 2, dtype=np.float64) / width  # [ceil(d / 2)]
    angles = positions / np.power(10000.0, exponents)  # [T, ceil(d / 2)]
    table = np.empty((max_length, width), dtype=np.float32)  # [T, d]
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)[:, : width // 2]
    return table
