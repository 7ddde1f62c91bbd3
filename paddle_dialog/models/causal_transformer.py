"""The causal pair: the encoder is the stack, and the decoder goes on with it after each source."""

from __future__ import annotations

from typing import Any, NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.layers.causal_transformer import CausalTransformer, CopyAttention
from paddle_dialog.layers.embeddings import SinusoidalPositions
from paddle_dialog.layers.masks import additive_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.layers.transformer import KeyValue
from paddle_dialog.models.pair import CachedDecoder, Decoder, Encoder


class CausalSource(NamedTuple):
    """A source as seen by the positions after it."""

    layers: list[KeyValue]  # keys and values [B, heads, S, d] for each layer
    lengths: Tensor  # [B]
    mask: Tensor  # additive [B, 1, 1, S]


class CausalMemory(NamedTuple):
    """A source as seen by its target."""

    source: CausalSource
    real: Tensor  # float [B, 1, S], 1 on real positions
    keys: Tensor  # of the copying head [B, S, depth]


class CausalEncoder(Encoder):
    """Positions, embedding dropout, and the causal stack; its keys and values are the decoder's start."""

    def __init__(self, config: CausalTransformerConfig) -> None:
        super().__init__()
        self.output_size = config.width
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.dropout = Dropout(config.dropout)
        self.stack = CausalTransformer(config)

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, CausalSource]:
        """Encode; see `Encoder`."""
        positions = self.positions(embedded.shape[1]).expand_as(embedded)
        outputs, layers = self.stack.read(self.dropout(embedded + positions))  # [B, S, D]
        return outputs, CausalSource(layers, lengths, additive_mask(real).unsqueeze([1, 2]))

    def go_on(
        self, embedded: Tensor, source: CausalSource, past: list[KeyValue] | None = None
    ) -> tuple[Tensor, list[KeyValue]]:
        """Compute the positions [B, T, E] after each source and the `past` of T' others.

        Returns:
            Outputs [B, T, D], and the keys and values of all positions after the source.
        """
        length, offset = embedded.shape[1], 0 if past is None else past[0][0].shape[2]
        places = source.lengths.unsqueeze(1) + paddle.arange(offset, offset + length)  # [B, T]
        x = self.dropout(embedded + F.embedding(places, self.positions.table))  # [B, T, D]
        return self.stack(x, source.layers, source.mask, past)


class CausalDecoder(CachedDecoder):
    """The encoder's own stack, going on after each source's last real position, and the head that copies."""

    def __init__(self, config: CausalTransformerConfig, encoder: CausalEncoder) -> None:
        super().__init__()
        self._encoder = (encoder,)  # a tuple, because the layers belong to the encoder
        self.copy = CopyAttention(config.width, config.copy_depth)

    def prepare(self, outputs: Tensor, real: Tensor, final: CausalSource) -> tuple[CausalMemory, None]:
        """Return the source and the keys of the copying head, and an empty past."""
        one = real.astype(outputs.dtype).unsqueeze(1)  # [B, 1, S]
        return CausalMemory(final, one, self.copy.prepare(outputs)), None

    def positions_after(
        self, embedded: Tensor, memory: CausalMemory, past: list[KeyValue] | None
    ) -> tuple[Tensor, Tensor, Any]:
        """See `CachedDecoder`."""
        x, past = self._encoder[0].go_on(embedded, memory.source, past)
        weights = self.copy(x, memory.keys, memory.source.mask.squeeze(1))  # [B, T, S]
        return x, weights * memory.real, past


def causal_pair(config: CausalTransformerConfig) -> tuple[Encoder, Decoder]:
    """Build encoder and decoder."""
    encoder = CausalEncoder(config)
    return encoder, CausalDecoder(config, encoder)
