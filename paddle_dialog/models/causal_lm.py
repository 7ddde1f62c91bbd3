"""A language model: a causal Transformer (Radford et al. 2018).

Positions count from a text's begin token; those of what stands before it (a title, a style) are negative.
"""

from __future__ import annotations

from typing import NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import CausalLmConfig
from paddle_dialog.layers.causal_transformer import CausalTransformer
from paddle_dialog.layers.embeddings import TiedProjection, TokenEmbedding
from paddle_dialog.layers.masks import additive_mask, causal_mask, length_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.layers.transformer import KeyValue
from paddle_dialog.models.pair import gather_rows


class CausalLmState(NamedTuple):
    """The state of a decoding step; all tensors have the batch as their first axis."""

    source: list[KeyValue]  # per layer [N, heads, S, d] each
    mask: Tensor  # additive [N, 1, 1, S]
    past: list[KeyValue] | None  # per layer [N, heads, steps so far, d] each


class CausalLm(nn.Layer):
    """Predicts each next token of packed texts, none of which sees another.

    Args:
        vocab_size: number V of tokens.
    """

    def __init__(self, config: CausalLmConfig, vocab_size: int) -> None:
        super().__init__()
        width = config.width
        self.embedding = TokenEmbedding(vocab_size, width, scale=True)
        init = paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, 0.1))
        self.positions = nn.Embedding(config.max_positions, width, weight_attr=init)
        self.stack = CausalTransformer(config)
        self.dropout = Dropout(config.dropout)
        self.output = TiedProjection(self.embedding)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return logits of every next token.

        Args:
            ids: int64 [B, T].
            positions: int64 [B, T]. A text begins where a position is not one above that before it.

        Returns:
            Logits [B, T, V].
        """
        mask = additive_mask(_same_text(positions) & causal_mask(ids.shape[1])).unsqueeze(1)  # [B, 1, T, T]
        x = self._embed(ids, positions)  # [B, T, D]
        for layer in self.stack.layers:
            x, _ = layer(x, mask)  # [B, T, D]
        return self.output(self.stack.final_norm(x))

    def encode(self, source: Tensor, lengths: Tensor) -> CausalLmState:
        """Return the state before the begin token, after what stands before it: ids [B, S] of the lengths [B]."""
        length = source.shape[1]
        positions = paddle.arange(length).unsqueeze(0) - lengths.unsqueeze(1)  # [B, S]
        _, read = self.stack.read(self._embed(source, positions))
        return CausalLmState(read, additive_mask(length_mask(lengths, length)).unsqueeze([1, 2]), None)

    def step(self, token: Tensor, state: CausalLmState) -> tuple[Tensor, CausalLmState]:
        """Return logits [N, V] after one more token [N], and the new state."""
        done = 0 if state.past is None else state.past[0][0].shape[2]
        x = self._embed(token.unsqueeze(1), paddle.full([token.shape[0], 1], done, "int64"))  # [N, 1, D]
        x, past = self.stack(x, state.source, state.mask, state.past)
        return self.output(x.squeeze(1)), state._replace(past=past)

    def reorder(self, state: CausalLmState, index: Tensor) -> CausalLmState:
        """Return the state of the rows `index` [M]."""
        return gather_rows(state, index)

    def _embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Embed [B, T] as [B, T, D]; the vectors of negative positions stand at the table's end."""
        table = positions % self.positions.weight.shape[0]
        return self.dropout(self.embedding(ids) + self.positions(table))


def _same_text(positions: Tensor) -> Tensor:
    """Return whether two places of a row [B, T] belong to one text, as bool [B, T, T]."""
    begins = positions[:, 1:] != positions[:, :-1] + 1  # [B, T - 1]
    text = F.pad(begins.astype("int32").cumsum(axis=1), [1, 0])  # [B, T]
    return text.unsqueeze(2) == text.unsqueeze(1)
