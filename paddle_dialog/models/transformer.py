"""The Transformer's pair, plain and with convolutions: positions and dropout before each stack."""

from __future__ import annotations

from typing import NamedTuple

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.models import EncoderDecoderConfig
from paddle_dialog.layers.embeddings import SinusoidalPositions
from paddle_dialog.layers.masks import additive_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.layers.transformer import DecoderStack, EncoderStack, KeyValue, LayerPast
from paddle_dialog.models.pair import CachedDecoder, Decoder, Encoder, self_attention_mask


class TransformerMemory(NamedTuple):
    """The source as seen by the decoder's layers."""

    layers: list[KeyValue]  # keys and values [B, heads, S, d] for each layer
    mask: Tensor  # additive [B, 1, 1, S]
    real: Tensor  # float [B, 1, S], 1 on real positions
    aligned: Tensor | None  # [B, S, D], added to the decoder's input position by position


class TransformerEncoder(Encoder):
    """Positions, embedding dropout, and the encoder's layers.

    Where the embeddings have a width of their own, they are dropped out and projected before positions are added.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.output_size = config.width
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.dropout = Dropout(config.dropout)
        self.projection = _projection(config)
        self.stack = EncoderStack(config)

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, None]:
        """Encode; see `Encoder`."""
        x = _with_positions(embedded, self.positions(embedded.shape[1]), self.projection, self.dropout)
        one = real.astype(embedded.dtype).unsqueeze(-1)  # [B, S, 1]
        return self.stack(x, additive_mask(real).unsqueeze([1, 2]), one), None


class TransformerDecoder(CachedDecoder):
    """Positions, embedding dropout, and the decoder's layers.

    With `aligned_input` the input at position t also holds a projection of the encoder's output at position t, for
    texts that correspond token by token: the model need not learn where to look.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.dropout = Dropout(config.dropout)
        self.projection = _projection(config)
        self.stack = DecoderStack(config)
        self.aligned_projection = (
            nn.Linear(config.width, config.width, bias_attr=False) if config.aligned_input else None
        )

    def prepare(self, outputs: Tensor, real: Tensor, final: None) -> tuple[TransformerMemory, None]:
        """Return each layer's keys and values of the source, and an empty past."""
        one = real.astype(outputs.dtype)  # [B, S]
        aligned = None
        if self.aligned_projection is not None:
            aligned = self.aligned_projection(outputs) * one.unsqueeze(-1)  # [B, S, D]
        layers, mask = self.stack.prepare_memory(outputs), additive_mask(real).unsqueeze([1, 2])
        return TransformerMemory(layers, mask, one.unsqueeze(1), aligned), None

    def positions_after(
        self, embedded: Tensor, memory: TransformerMemory, past: list[LayerPast] | None
    ) -> tuple[Tensor, Tensor, list[LayerPast]]:
        """See `CachedDecoder`."""
        length, offset = embedded.shape[1], 0 if past is None else past[0][0].shape[2]
        positions = self.positions(length, offset)  # [1, T, D]
        if memory.aligned is not None:
            embedded = embedded + _window(memory.aligned, offset, length)
        x = _with_positions(embedded, positions, self.projection, self.dropout)  # [B, T, D]
        mask = self_attention_mask(length, offset)
        x, past, weights = self.stack(x, memory.layers, mask, memory.mask, past)
        # The softmax leaves about 1e-28 on padding; copying needs exact zeros.
        return x, weights * memory.real, past


def _projection(config: EncoderDecoderConfig) -> nn.Linear | None:
    """Return the map of embeddings to the layers' width, where they have a width of their own."""
    return nn.Linear(config.embedding_size, config.width, bias_attr=False) if config.projects_input else None


def _with_positions(
    embedded: Tensor, positions: Tensor, projection: nn.Layer | None, dropout: Dropout
) -> Tensor:
    """Return the input [B, T, D] of a stack, of embedded tokens [B, T, E] at `positions` [1, T, D]."""
    if projection is not None:
        return projection(dropout(embedded)) + positions
    return dropout(embedded + positions.expand_as(embedded))


def _window(x: Tensor, offset: int, length: int) -> Tensor:
    """Return positions offset to offset + length of [B, S, D], zeros where the source has ended."""
    window = x[:, offset : offset + length]
    missing = length - window.shape[1]
    if missing == 0:
        return window
    return paddle.concat([window, paddle.zeros([x.shape[0], missing, x.shape[2]], dtype=x.dtype)], axis=1)


def transformer_pair(config: EncoderDecoderConfig) -> tuple[Encoder, Decoder]:
    """Build encoder and decoder."""
    return TransformerEncoder(config), TransformerDecoder(config)
