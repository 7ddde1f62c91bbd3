"""A linear judge of replies: reads the decoder's state over a reply, fitted to people's or models' blind ratings."""

from __future__ import annotations

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from paddle_dialog.errors import UserError

JUDGE = "judge.safetensors"  # in a bundle
_WEIGHTS = "weights"


class ReplyJudge:
    """Values replies by the decoder's mean output over them.

    Args:
        weights: float32 [D].
    """

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
    def from_bytes(cls, content: bytes, width: int, where: str) -> ReplyJudge:
        """Read what `to_bytes` made.

        Args:
            content: of the file.
            width: D of the model that it judges.
            where: the file, for messages.

        Raises:
            UserError: the content is something else, or of another width.
        """
        try:
            weights = load(content)[_WEIGHTS]
        except (SafetensorError, KeyError) as error:
            raise UserError(f"{where}: holds no judge of replies ({error}); fit it anew") from error
        if weights.shape != (width,):
            raise UserError(
                f"{where}: is of a model of width {weights.size}, and this one has {width}; fit it anew"
            )
        return cls(weights)
