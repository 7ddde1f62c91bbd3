"""The pair of the Transformer with convolutions."""

from __future__ import annotations

from typing import NamedTuple

from paddle import Tensor

from paddle_dialog.config.models import ConvolutionalTransformerConfig
from paddle_dialog.layers.convolutional_transformer import (
    ConvolutionalDecoderStack,
    ConvolutionalEncoderStack,
    LayerPast,
)
from paddle_dialog.layers.masks import additive_mask
from paddle_dialog.layers.multihead import KeyValue
from paddle_dialog.layers.positions import SinusoidalPositions
from paddle_dialog.models.pair import CachedDecoder, Decoder, Encoder, self_attention_mask


class ConvolutionalMemory(NamedTuple):
    """The source as seen by the decoder's layers."""

    layers: list[KeyValue]  # keys and values [B, heads, S, d] for each layer
    mask: Tensor  # additive [B, 1, 1, S]
    real: Tensor  # float [B, 1, S], 1 on real positions


class ConvolutionalEncoder(Encoder):
    """The encoder's layers and their timing signal."""

    def __init__(self, config: ConvolutionalTransformerConfig) -> None:
        super().__init__()
        self.output_size = config.width
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.stack = ConvolutionalEncoderStack(config)

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, None]:
        """Encode; see `Encoder`."""
        mask = additive_mask(real).unsqueeze([1, 2])  # [B, 1, 1, S]
        positions = self.positions(embedded.shape[1])
        return self.stack(embedded, positions, mask, real.astype(embedded.dtype).unsqueeze(-1)), None


class ConvolutionalDecoder(CachedDecoder):
    """The decoder's layers and their timing signal."""

    def __init__(self, config: ConvolutionalTransformerConfig) -> None:
        super().__init__()
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.stack = ConvolutionalDecoderStack(config)

    def prepare(self, outputs: Tensor, real: Tensor, final: None) -> tuple[ConvolutionalMemory, None]:
        """Return each layer's keys and values of the source, and an empty past."""
        layers, mask = self.stack.prepare_memory(outputs), additive_mask(real).unsqueeze([1, 2])
        return ConvolutionalMemory(layers, mask, real.astype(outputs.dtype).unsqueeze(1)), None

    def positions_after(
        self, embedded: Tensor, memory: ConvolutionalMemory, past: list[LayerPast] | None
    ) -> tuple[Tensor, Tensor, list[LayerPast]]:
        """See `CachedDecoder`."""
        before = None if past is None else past[0].self_attention
        length, offset = embedded.shape[1], 0 if before is None else before[0].shape[2]
        x, past, weights = self.stack(
            embedded,
            self.positions(length, offset),
            memory.layers,
            self_attention_mask(length, offset),
            memory.mask,
            past,
        )
        # The softmax leaves about 1e-28 on padding; copying needs exact zeros.
        return x, weights * memory.real, past


def convolutional_pair(config: ConvolutionalTransformerConfig) -> tuple[Encoder, Decoder]:
    """Build encoder and decoder."""
    return ConvolutionalEncoder(config), ConvolutionalDecoder(config)
