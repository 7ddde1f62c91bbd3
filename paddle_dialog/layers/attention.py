"""Attention of a query over a memory, with four score functions behind one interface.

A score function works in two steps so that a decoding loop pays for the memory once:
`keys = score.prepare(memory)`, then `score(query, keys)` at every step.
"""

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import nn

from paddle_dialog.errors import UserError
from paddle_dialog.layers.masks import additive_mask

ScoreName = Literal["additive", "dot", "scaled_dot", "bilinear"]


class Score(nn.Layer):
    """How well each memory position answers a query; the base of all score functions."""

    def prepare(self, memory: paddle.Tensor) -> paddle.Tensor:
        """Compute what does not depend on the query.

        Args:
            memory: [B, S, K].

        Returns:
            keys [B, S, *], to be handed to every call.
        """
        return memory

    def forward(self, query: paddle.Tensor, keys: paddle.Tensor) -> paddle.Tensor:
        """Score every memory position.

        Args:
            query: [B, H], or [B, T, H] for all steps at once.
            keys: [B, S, *] from `prepare`.

        Returns:
            [B, S], or [B, T, S].
        """
        if query.ndim == 2:
            return self._score(query.unsqueeze(1), keys).squeeze(1)  # [B, S]
        return self._score(query, keys)  # [B, T, S]

    def _score(self, query: paddle.Tensor, keys: paddle.Tensor) -> paddle.Tensor:
        """Score queries [B, T, H] against keys [B, S, *], as [B, T, S]."""
        raise NotImplementedError


class AdditiveScore(Score):
    """Score vᵀ tanh(W k + U q), without biases (Bahdanau et al. 2015, appendix A.1.2).

    Args:
        query_size: H.
        key_size: K, the memory's vector size.
        hidden_size: A, the size in which query and memory meet.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.key_proj = nn.Linear(key_size, hidden_size, bias_attr=False)
        self.query_proj = nn.Linear(query_size, hidden_size, bias_attr=False)
        self.score_proj = nn.Linear(hidden_size, 1, bias_attr=False)

    def prepare(self, memory: paddle.Tensor) -> paddle.Tensor:
        """Project the memory, [B, S, K] to [B, S, A]."""
        return self.key_proj(memory)

    def _score(self, query: paddle.Tensor, keys: paddle.Tensor) -> paddle.Tensor:
        projected = self.query_proj(query).unsqueeze(2)  # [B, T, 1, A]
        hidden = F.tanh(projected + keys.unsqueeze(1))  # [B, T, S, A]
        return self.score_proj(hidden).squeeze(3)  # [B, T, S]


class DotScore(Score):
    """Score kᵀq; query and memory have one size (Luong et al. 2015, section 3.1, "dot")."""

    def _score(self, query: paddle.Tensor, keys: paddle.Tensor) -> paddle.Tensor:
        return paddle.matmul(query, keys, transpose_y=True)  # [B, T, S]


class ScaledDotScore(Score):
    """Score kᵀq / √H; query and memory have one size H (Vaswani et al. 2017, equation 1)."""

    def _score(self, query: paddle.Tensor, keys: paddle.Tensor) -> paddle.Tensor:
        scaled = query * query.shape[-1] ** -0.5  # [B, T, H]
        return paddle.matmul(scaled, keys, transpose_y=True)  # [B, T, S]


class BilinearScore(Score):
    """Score qᵀ W k (Luong et al. 2015, section 3.1, "general").

    Args:
        query_size: H.
        key_size: K, the memory's vector size.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.key_proj = nn.Linear(key_size, query_size, bias_attr=False)

    def prepare(self, memory: paddle.Tensor) -> paddle.Tensor:
        """Project the memory to the query's size, [B, S, K] to [B, S, H]."""
        return self.key_proj(memory)

    def _score(self, query: paddle.Tensor, keys: paddle.Tensor) -> paddle.Tensor:
        return paddle.matmul(query, keys, transpose_y=True)  # [B, T, S]


class Attention(nn.Layer):
    """Average of values, weighted by the softmax of a score function.

    Args:
        score: the score function; its `prepare` gives the keys of each call.
    """

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    def forward(
        self,
        query: paddle.Tensor,
        keys: paddle.Tensor,
        values: paddle.Tensor,
        mask: paddle.Tensor | None = None,
        return_weights: bool = False,
    ) -> paddle.Tensor | tuple[paddle.Tensor, paddle.Tensor]:
        """Attend to the values.

        Args:
            query: [B, H], or [B, T, H] for all steps at once.
            keys: [B, S, *] from `score.prepare(memory)`.
            values: [B, S, D].
            mask: bool [B, S], True = real; None attends to all.
            return_weights: return the weights too.

        Returns:
            context [B, D] or [B, T, D], and with `return_weights` the weights [B, S] or [B, T, S]. Masked
            positions weigh exactly 0; where all are masked the context is zero.
        """
        scores = self.score(query, keys)  # [B, S] or [B, T, S]
        if mask is None:
            weights = F.softmax(scores)
        else:
            if scores.ndim == 3:
                mask = mask.unsqueeze(1)  # [B, 1, S]
            # The product makes zero exact: the softmax leaves about 1e-28, or 1 / S in a fully masked row.
            weights = F.softmax(scores + additive_mask(mask, scores.dtype)) * mask.astype(scores.dtype)
        context = self._average(weights, values)
        return (context, weights) if return_weights else context

    @staticmethod
    def _average(weights: paddle.Tensor, values: paddle.Tensor) -> paddle.Tensor:
        """Average values [B, S, D] by weights [B, S] or [B, T, S], as [B, D] or [B, T, D]."""
        if weights.ndim == 2:
            return paddle.matmul(weights.unsqueeze(1), values).squeeze(1)  # [B, D]
        return paddle.matmul(weights, values)  # [B, T, D]


def make_score(name: ScoreName, query_size: int, key_size: int, hidden_size: int) -> Score:
    """Make a score function by name.

    Args:
        name: `additive`, `dot`, `scaled_dot` or `bilinear`.
        query_size: H.
        key_size: K, the memory's vector size.
        hidden_size: used by `additive` only.

    Raises:
        UserError: unknown name, or a dot product of two sizes.
    """
    if name == "additive":
        return AdditiveScore(query_size, key_size, hidden_size)
    if name == "bilinear":
        return BilinearScore(query_size, key_size)
    if name not in ("dot", "scaled_dot"):
        raise UserError(f"attention score '{name}' is unknown: choose additive, dot, scaled_dot or bilinear")
    if query_size != key_size:
        raise UserError(
            f"attention score '{name}' needs query and memory of one size, not {query_size} and {key_size}: "
            "choose bilinear or additive, or make the sizes equal"
        )
    return DotScore() if name == "dot" else ScaledDotScore()
