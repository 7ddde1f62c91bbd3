"""A judge of what a model writes: reads the decoder's states over a text, fitted to blind ratings."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.folder import file_errors
from paddle_dialog.errors import UserError

logger = logging.getLogger("paddle_dialog")

JUDGE = "judge.safetensors"  # in a bundle
_WEIGHTS = "weights"


@dataclass(frozen=True)
class Kernel:
    """What a text gains by being like certain others: shares · exp(-|x - centre|²), of texts x over their scales.

    Args:
        centres: of M texts, divided by the scales, float32 [M, D].
        scales: of the D numbers, float32 [D].
        shares: float32 [M].
    """

    centres: np.ndarray
    scales: np.ndarray
    shares: np.ndarray

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Return the values [N] of states [N, D]."""
        values: np.ndarray = bells(states / self.scales, self.centres) @ self.shares
        return values


class Judge:
    """Values texts by the decoder's outputs over them.

    Args:
        weights: float32 [D].
        kernel: is added to the linear map; None is none.
    """

    def __init__(self, weights: np.ndarray, kernel: Kernel | None = None) -> None:
        self.weights = weights.astype(np.float32)
        self.kernel = kernel

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Return the values [N] of states [N, D]."""
        values: np.ndarray = states @ self.weights
        return values if self.kernel is None else values + self.kernel(states)

    def to_bytes(self) -> bytes:
        """Return the file of a bundle; the kernel's centres are rounded to half precision."""
        arrays = {_WEIGHTS: self.weights}
        if self.kernel is not None:
            arrays |= {
                "centres": self.kernel.centres.astype(np.float16),
                "scales": self.kernel.scales.astype(np.float32),
                "shares": self.kernel.shares.astype(np.float32),
            }
        return save(arrays)

    @classmethod
    def from_bytes(cls, content: bytes, width: int, where: str = JUDGE) -> Judge:
        """Read what `to_bytes` made.

        Args:
            content: of the file.
            width: D of the model that it judges.
            where: the file, for messages.

        Raises:
            UserError: the content is something else, or of another width.
        """
        with file_errors(where, "judge", "fit it anew"):
            arrays = load(content)
            weights, kernel = arrays[_WEIGHTS], None
            if "centres" in arrays:
                kernel = Kernel(arrays["centres"].astype(np.float32), arrays["scales"], arrays["shares"])
        widths = [weights.shape] + ([] if kernel is None else [kernel.scales.shape, kernel.centres.shape[1:]])
        if any(one != (width,) for one in widths):
            raise UserError(
                f"{where}: reads {weights.size} numbers of a text, and this model has {width}; fit it anew"
            )
        return cls(weights, kernel)


def bells(texts: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return exp(-|text - centre|²) of texts [N, D] and centres [M, D], [N, M]."""
    near: np.ndarray = np.exp(-distances(texts, centres))
    return near


def distances(texts: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return |text - centre|² of texts [N, D] and centres [M, D], [N, M]."""
    apart = (texts**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * texts @ centres.T  # [N, M]
    return np.maximum(apart, 0)


def judge_of_bundle(content: bytes | None, width: int, weight: float) -> Judge | None:
    """Return the judge that a config gives a weight.

    Args:
        content: of the bundle's `JUDGE`; None where it has none, which is told in the log if the weight is not 0.
        width: D that its model's states have.
        weight: of the judge in the sum that orders the candidates.

    Raises:
        UserError: the file is no judge of this model.
    """
    if not weight:
        return None
    if content is None:
        logger.info("these weights have no judge (%s): candidates are ordered without one", JUDGE)
        return None
    return Judge.from_bytes(content, width)
