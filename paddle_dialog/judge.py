"""A judge of what a model writes: a linear map of the decoder's states over a text, fitted to blind ratings."""

from __future__ import annotations

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.folder import file_errors
from paddle_dialog.errors import UserError

JUDGE = "judge.safetensors"  # in a bundle
_WEIGHTS = "weights"


class Judge:
    """Values texts by the decoder's outputs over them."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights.astype(np.float32)

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Return the values [N] of states [N, D]."""
        values: np.ndarray = states @ self.weights
        return values

    def to_bytes(self) -> bytes:
        """Return the file of a bundle."""
        return save({_WEIGHTS: self.weights})

    @classmethod
    def from_bytes(cls, content: bytes, width: int, where: str = JUDGE) -> Judge:
        """Read what `to_bytes` made."""
        with file_errors(where, "judge", "fit it anew"):
            weights = load(content)[_WEIGHTS]
        if weights.shape != (width,):
            raise UserError(
                f"{where}: reads {weights.size} numbers of a text, and this model has {width}; fit it anew"
            )
        return cls(weights)
