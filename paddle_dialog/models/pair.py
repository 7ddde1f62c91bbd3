"""The interface of every family: an encoder of embedded sources and a decoder of embedded targets."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import Tensor, nn

from paddle_dialog.layers.masks import additive_mask, causal_mask


class Encoder(nn.Layer):
    """Reads embedded sources.

    Attributes:
        output_size: width H of the outputs.
    """

    output_size: int

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, Any]:
        """Encode sources.

        Args:
            embedded: [B, S, E].
            lengths: [B].
            real: bool [B, S], False on padding.

        Returns:
            Outputs [B, S, H], and further input of the decoder, or None.
        """
        raise NotImplementedError


class Decoder(nn.Layer):
    """Writes targets: all positions of known ones at once, or one position after the other.

    Memory and past are nested tensors whose first axis is the row: the source, and the target so far, as the decoder
    sees them.
    """

    def prepare(self, outputs: Tensor, real: Tensor, final: Any) -> tuple[Any, Any]:
        """Make the memory, and the past before the first position, from the encoder's output.

        Args:
            outputs: [B, S, H].
            real: bool [B, S], False on padding.
            final: the further input.
        """
        raise NotImplementedError

    def forward(self, embedded: Tensor, memory: Any, past: Any) -> tuple[Tensor, Tensor]:
        """Decode all positions of known targets.

        Args:
            embedded: [B, T, E].
            memory: from `prepare`.
            past: from `prepare`.

        Returns:
            Hidden [B, T, width], and attention over the source [B, T, S], 0 on padding.
        """
        raise NotImplementedError

    def step(self, embedded: Tensor, memory: Any, past: Any) -> tuple[Tensor, Tensor, Any]:
        """Decode one more position of every row.

        Args:
            embedded: [N, E].
            memory: from `prepare`.
            past: from `prepare` or the step before.

        Returns:
            Hidden [N, width], attention over the source [N, S], 0 on padding, and the past with this position.
        """
        raise NotImplementedError


class CachedDecoder(Decoder):
    """A decoder that computes positions after those whose keys and values it has cached; an empty past is None."""

    def forward(self, embedded: Tensor, memory: Any, past: Any) -> tuple[Tensor, Tensor]:
        """Decode all positions of known targets; see `Decoder`."""
        hidden, attention, _ = self.positions_after(embedded, memory, past)
        return hidden, attention

    def step(self, embedded: Tensor, memory: Any, past: Any) -> tuple[Tensor, Tensor, Any]:
        """Decode one more position of every row; see `Decoder`."""
        hidden, attention, past = self.positions_after(embedded.unsqueeze(1), memory, past)
        return hidden.squeeze(1), attention.squeeze(1), past

    def positions_after(self, embedded: Tensor, memory: Any, past: Any) -> tuple[Tensor, Tensor, Any]:
        """Return hidden [B, T, width], attention [B, T, S] and the new past of embedded positions [B, T, E]."""
        raise NotImplementedError


def self_attention_mask(length: int, offset: int) -> Tensor | None:
    """Return the mask of T = `length` positions after `offset` others, [T, offset + T]; None if one sees all."""
    return additive_mask(causal_mask(offset + length)[offset:]) if length > 1 else None


def gather_rows(state: Any, index: Tensor) -> Any:
    """Select rows of every tensor of a state, keeping its structure.

    Args:
        state: tensors [N, ...] in nested tuples (named ones too), lists and dicts; None stays None.
        index: int64 [M], the rows to take, repeated or left out as a search needs.

    Returns:
        The same structure with tensors [M, ...].
    """
    if state is None:
        return None
    if isinstance(state, Tensor):
        return paddle.index_select(state, index, axis=0)
    if isinstance(state, dict):
        return {key: gather_rows(value, index) for key, value in state.items()}
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(gather_rows(value, index) for value in state))
    return type(state)(gather_rows(value, index) for value in state)
