"""Attention of a decoder's state over a memory, with four score functions.

What does not depend on the state is computed once: `keys = score.prepare(memory)`, then `score(query, keys)` at
every step.
"""

from __future__ import annotations

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.masks import additive_mask

ScoreName = Literal["additive", "dot", "scaled_dot", "bilinear"]


class Score(nn.Layer):
    """How well each memory position answers a query.

    Args:
        name: `dot` is kᵀq (Luong et al. 2015, section 3.1), `scaled_dot` kᵀq / √H (Vaswani et al. 2017, equation 1),
            `bilinear` qᵀ W k (Luong et al. 2015, section 3.1, "general"), `additive` vᵀ tanh(W k + U q), without
            biases (Bahdanau et al. 2015, appendix A.1.2).
        size: H of query and memory.
    """

    def __init__(self, name: ScoreName, size: int) -> None:
        super().__init__()
        self.name = name
        if name in ("additive", "bilinear"):
            self.key_proj = nn.Linear(size, size, bias_attr=False)
        if name == "additive":
            self.query_proj = nn.Linear(size, size, bias_attr=False)
            self.score_proj = nn.Linear(size, 1, bias_attr=False)

    def prepare(self, memory: Tensor) -> Tensor:
        """Return the keys [B, S, H] of a memory [B, S, H]."""
        return self.key_proj(memory) if self.name in ("additive", "bilinear") else memory

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score the positions of `keys` [B, S, H] against a query [B, H], as [B, S]."""
        if self.name == "additive":
            hidden = F.tanh(self.query_proj(query).unsqueeze(1) + keys)  # [B, S, H]
            return self.score_proj(hidden).squeeze(2)
        if self.name == "scaled_dot":
            query = query * query.shape[-1] ** -0.5
        return paddle.matmul(query.unsqueeze(1), keys, transpose_y=True).squeeze(1)


class Attention(nn.Layer):
    """Average of values, weighted by the softmax of a score function.

    Args:
        size: H of query and values.
    """

    def __init__(self, name: ScoreName, size: int) -> None:
        super().__init__()
        self.score = Score(name, size)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend to the values.

        Args:
            query: [B, H].
            keys: [B, S, H] from `score.prepare(memory)`.
            values: [B, S, H].
            mask: bool [B, S], True = real.

        Returns:
            Context [B, H] and the weights [B, S]. Masked positions weigh exactly 0; where all are masked the
            context is zero.
        """
        scores = self.score(query, keys)  # [B, S]
        # The product makes zero exact: the softmax leaves about 1e-28, or 1 / S in a fully masked row.
        weights = F.softmax(scores + additive_mask(mask, scores.dtype)) * mask.astype(scores.dtype)
        return paddle.matmul(weights.unsqueeze(1), values).squeeze(1), weights
