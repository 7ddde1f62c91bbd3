"""Multi-head attention (Vaswani et al. 2017, section 3.2.2) of a sequence over itself and over another.

Projections that read the same input are one matrix (queries, keys and values of self-attention; keys and values
of cross-attention): fewer and larger products are faster on a CPU, and on a GPU with small batches.

The total depths of keys and of values may differ from the model width; each is shared out among the heads.
"""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.dropout import Dropout
from paddle_dialog.layers.heads import merge_heads, split_heads
from paddle_dialog.layers.linear import Linear

KeyValue = tuple[Tensor, Tensor]  # keys and values, each [B, heads, S, d_head]


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: nn.Layer
) -> tuple[Tensor, Tensor]:
    """Return softmax(q kᵀ / sqrt(d) + mask) v for all heads (Vaswani et al. 2017, equation 1).

    Args:
        query: [B, heads, T, d].
        key: [B, heads, S, d].
        value: [B, heads, S, d].
        mask: additive, broadcastable to [B, heads, T, S], or None.
        dropout: applied to the weights.

    Returns:
        Context [B, T, heads * d] and the weights before dropout [B, heads, T, S].
    """
    scores = paddle.matmul(query * query.shape[-1] ** -0.5, key, transpose_y=True)  # [B, heads, T, S]
    if mask is not None:
        scores = scores + mask.expand(scores.shape)  # a broadcasting sum is slower
    weights = F.softmax(scores, axis=-1)  # [B, heads, T, S]
    context = paddle.matmul(dropout(weights), value)  # [B, heads, T, d]
    return merge_heads(context), weights


def head_averaged_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Return one alignment for all heads: the softmax of their mean logits, which is sharper than their mean weights.

    Args:
        query: [B, heads, T, d].
        key: [B, heads, S, d].
        mask: additive, broadcastable to [B, heads, T, S], or None.

    Returns:
        [B, T, S].
    """
    scores = paddle.matmul(query * query.shape[-1] ** -0.5, key, transpose_y=True)  # [B, heads, T, S]
    logits = scores.mean(axis=1, keepdim=True)  # [B, 1, T, S]
    return F.softmax(logits if mask is None else logits + mask, axis=-1).squeeze(1)


class SelfAttention(nn.Layer):
    """Multi-head attention of a sequence over itself.

    Args:
        width: model width D.
        num_heads: attention heads.
        dropout: rate on the attention weights.
        bias: whether the projections have one.
        key_depth: depth of all heads' queries and of their keys together, a multiple of `num_heads`; `width`
            by default.
        value_depth: the same of their values.
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        key_depth: int | None = None,
        value_depth: int | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        keys, values = key_depth or width, value_depth or width
        self._depths = [keys, keys, values]
        self.query_key_value = Linear(width, 2 * keys + values, bias)
        self.output = Linear(values, width, bias)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        past: KeyValue | None = None,
        source: KeyValue | None = None,
    ) -> tuple[Tensor, KeyValue]:
        """Attend over `x` [B, T, D] and, where given, the `past` of earlier steps and a `source` before it.

        Returns:
            Output [B, T, D] and the keys and values of `past` and `x`.
        """
        fused = self.query_key_value(x)  # [B, T, all depths]
        query, key, value = split_heads(fused, self._depths, self.num_heads)  # [B, heads, T, d] each
        if past is not None:
            key = paddle.concat([past[0], key], axis=2)
            value = paddle.concat([past[1], value], axis=2)
        present = key, value
        if source is not None:
            key = paddle.concat([source[0], key], axis=2)
            value = paddle.concat([source[1], value], axis=2)
        context, _ = scaled_dot_product_attention(query, key, value, mask, self.dropout)  # [B, T, D]
        return self.output(context), present


class CrossAttention(nn.Layer):
    """Multi-head attention of the target over the encoded source; arguments as for `SelfAttention`."""

    def __init__(
        self,
        width: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        key_depth: int | None = None,
        value_depth: int | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        keys, values = key_depth or width, value_depth or width
        self._depths = [keys, values]
        self.query = Linear(width, keys, bias)
        self.key_value = Linear(width, keys + values, bias)
        self.output = Linear(values, width, bias)
        self.dropout = Dropout(dropout)

    def prepare(self, memory: Tensor) -> KeyValue:
        """Return keys and values of the encoded source [B, S, D], computed once a sequence."""
        key, value = split_heads(
            self.key_value(memory), self._depths, self.num_heads
        )  # [B, heads, S, d] each
        return key, value

    def averaged_weights(self, x: Tensor, memory: KeyValue, mask: Tensor | None) -> Tensor:
        """Return where all heads together look from `x` [B, T, D]: `head_averaged_weights` [B, T, S]."""
        return head_averaged_weights(self._queries(x), memory[0], mask)

    def forward(self, x: Tensor, memory: KeyValue, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attend from `x` [B, T, D]; return the output [B, T, D] and the weights [B, heads, T, S]."""
        context, weights = scaled_dot_product_attention(self._queries(x), *memory, mask, self.dropout)
        return self.output(context), weights

    def _queries(self, x: Tensor) -> Tensor:
        """Project [B, T, D] to [B, heads, T, d]."""
        return split_heads(self.query(x), self._depths[:1], self.num_heads)[0]
