"""Yardsticks that a recipe's training is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import paddle.nn.functional as F
from paddle import Tensor, nn


@dataclass(frozen=True)
class Yardstick:
    """A plainly written network, trained in turns with a recipe's own.

    Args:
        network: takes the same inputs.
        criterion: takes the same labels.
        random_batches: whether it is also trained on batches that are not bucketed by length.
    """

    network: nn.Layer
    criterion: nn.Layer
    random_batches: bool = False


class PlainCriterion(nn.Layer):
    """Masked cross-entropy as a mean over tokens; keeps `token_nll` [B, T], as a real run's criterion does."""

    token_nll: Tensor

    def forward(self, logits: Tensor, label: Tensor, mask: Tensor) -> Tensor:
        """Return the loss of logits [B, T, V], label [B, T] and mask [B, T]."""
        nll = F.cross_entropy(logits, label.unsqueeze(-1), reduction="none").squeeze(-1) * mask
        self.token_nll = nll.detach()  # [B, T]
        return nll.sum() / mask.sum()
