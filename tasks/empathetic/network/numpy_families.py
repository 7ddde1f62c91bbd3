"""The model families on arrays, behind one interface: how a context is read, and how a reply goes on from it.

``read(embedded [B, S, D], lengths [B]) → outputs [B, S, D], what else is kept of the context``; ``prepare`` makes the
state before the first position of it; ``step(embedded [N, D], state) → hidden [N, D], attention over the context
[B, R, S], state``, where R is the most rows of a context.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from paddle_dialog.config.models import CausalTransformerConfig, TransformerConfig
from paddle_dialog.errors import UserError
from paddle_dialog.layers.sinusoids import sinusoids
from paddle_dialog.numpy_models.causal_transformer import CausalStack, CopyAttention
from paddle_dialog.numpy_models.decoder_state import DecoderState
from paddle_dialog.numpy_models.operators import Weights
from paddle_dialog.numpy_models.sources import RowInputs
from paddle_dialog.numpy_models.text_tree import TextTree
from paddle_dialog.numpy_models.transformer_layers import DecoderStack, EncoderStack, position_vectors


class ReplyState(Protocol):
    """A family's part of what a decoding step needs."""

    @property
    def rows(self) -> RowInputs:
        """N rows of B contexts."""

    def reorder(self, index: np.ndarray) -> tuple[Any, np.ndarray | None]:
        """The state of the rows ``index`` [M], and the contexts that are left [B'], or None where all are."""

    def reorder_within(self, index: np.ndarray) -> Any:
        """``reorder`` for rows that stay with their context."""


class Family(Protocol):
    """See the module."""

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, Any]:
        """Outputs [B, S, D] of contexts, and what else is kept of them."""

    def prepare(self, outputs: np.ndarray, kept: Any, lengths: np.ndarray) -> Any:
        """The state before the first position."""

    def step(self, x: np.ndarray, state: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Hidden [N, D], attention [B, R, S] and the new state after one more position [N, D]."""


class TransformerFamily:
    """Encoder and decoder of two stacks.

    Args:
        config: of the network.
        weights: of the network.
    """

    def __init__(self, config: TransformerConfig, weights: Weights) -> None:
        self._source_positions = position_vectors(config, weights, "encoder.positions.weight")
        self._target_positions = position_vectors(config, weights, "decoder.positions.weight")
        self._encoder = EncoderStack(config, weights, "encoder.stack")
        self._decoder = DecoderStack(config, weights, "decoder.stack")

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, None]:
        """See the module."""
        return self._encoder(embedded + self._source_positions[: embedded.shape[1]], lengths), None

    def prepare(self, outputs: np.ndarray, kept: None, lengths: np.ndarray) -> DecoderState:
        """See the module."""
        return self._decoder.prepare(outputs, lengths)

    def step(self, x: np.ndarray, state: DecoderState) -> tuple[np.ndarray, np.ndarray, DecoderState]:
        """See the module."""
        hidden, attention, state = self._decoder(x + self._target_positions[state.length], state)
        return hidden, attention.mean(axis=1), state


class CausalState(NamedTuple):
    """What a causal reply needs."""

    decoder: DecoderState
    keys: np.ndarray  # of the copying head [B, S, depth]
    lengths: np.ndarray  # of the contexts [B]

    @property
    def rows(self) -> RowInputs:
        """N rows of B contexts."""
        return self.decoder.rows

    def reorder(self, index: np.ndarray) -> tuple[CausalState, np.ndarray | None]:
        """See ``DecoderState``."""
        decoder, left = self.decoder.reorder(index)
        if left is None:
            return self._replace(decoder=decoder), None
        return CausalState(decoder, self.keys[left], self.lengths[left]), left

    def reorder_within(self, index: np.ndarray) -> CausalState:
        """See ``DecoderState``."""
        return self._replace(decoder=self.decoder.reorder_within(index))


class CausalFamily:
    """One stack that reads the context and goes on after its last real position, and the head that copies.

    Args:
        config: of the network.
        weights: of the network.
    """

    def __init__(self, config: CausalTransformerConfig, weights: Weights) -> None:
        self._positions = sinusoids(max_length=config.max_positions, width=config.width)  # [positions, D]
        self._stack = CausalStack(config, weights, "encoder.stack")
        self._copy = CopyAttention(weights, "decoder.copy", config.width, config.copy_depth)

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See the module; what is kept are keys and values [B, S, 2L, D]."""
        return self._stack.read(embedded + self._positions[: embedded.shape[1]])

    def prepare(self, outputs: np.ndarray, kept: np.ndarray, lengths: np.ndarray) -> CausalState:
        """See the module."""
        return CausalState(DecoderState.of(kept, lengths), self._copy.prepare(outputs), lengths)

    def step(self, x: np.ndarray, state: CausalState) -> tuple[np.ndarray, np.ndarray, CausalState]:
        """See the module."""
        rows = state.rows
        places = state.lengths[rows.inputs] + state.decoder.length  # [N]
        hidden, decoder = self._stack.step(x + self._positions[places], state.decoder)  # [N, D]
        attention = self._copy(rows.spread(hidden), state.keys, state.decoder.mask[:, 0])  # [B, R, S]
        return hidden, attention, state._replace(decoder=decoder)

    def follow(self, x: np.ndarray, tree: TextTree, state: CausalState) -> tuple[np.ndarray, np.ndarray]:
        """All positions of many replies to one context.

        Args:
            x: input of each node of the replies' tree [N, D].
            tree: of the replies.
            state: before the first word, of a single context.

        Returns:
            Hidden [N, D] and attention over the context [N, S].

        Raises:
            UserError: a reply is longer than the model has positions for.
        """
        size = int(state.lengths[0])
        if size + tree.paths.shape[1] > len(self._positions):
            raise UserError(
                f"a reply of {tree.paths.shape[1] - 1} tokens cannot be scored: after this context the model has "
                f"{len(self._positions) - size - 1} positions left; give a shorter one"
            )
        x = x + self._positions[size + tree.places]
        hidden = self._stack.follow(x, tree, state.decoder.memory[0, :size])  # [N, D]
        return hidden, self._copy(hidden[None], state.keys[:, :size])[0]
