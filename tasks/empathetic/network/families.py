"""The model families behind one pair of interfaces: an encoder of the context and a decoder of the reply.

Encoder: ``(embedded [B, S, E], lengths [B], real [B, S]) → outputs [B, S, H], final states or None``.
Decoder: ``prepare(outputs, real, final) → memory, past`` once a context; then, for any number of positions,
``(embedded [B, T, E], memory, past) → hidden [B, T, H], attention over the context [B, T, S], past``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import (
    CausalTransformerConfig,
    ConvolutionalTransformerConfig,
    FamilyConfig,
    LstmAttentionConfig,
    TransformerConfig,
)
from paddle_dialog.layers.causal_transformer import CausalTransformer, CopyAttention
from paddle_dialog.layers.convolutional_transformer import (
    ConvolutionalDecoder,
    ConvolutionalEncoder,
    LayerSizes,
)
from paddle_dialog.layers.dropout import Dropout
from paddle_dialog.layers.masks import additive_mask, causal_mask
from paddle_dialog.layers.multihead import KeyValue
from paddle_dialog.layers.positions import LearnedPositions, SinusoidalPositions
from paddle_dialog.layers.recurrent import AttentionCell, AttentionMemory, RecurrentEncoder, StateBridge
from paddle_dialog.layers.transformer import TransformerDecoder, TransformerEncoder


class AttendedMemory(NamedTuple):
    """The context as the layers of a Transformer decoder see it."""

    layers: list[KeyValue]
    mask: Tensor  # additive [B, 1, 1, S]
    real: Tensor  # float [B, 1, S], 1 on real positions


class RecurrentContextEncoder(nn.Layer):
    """Embedding dropout and the recurrent encoder."""

    def __init__(self, config: LstmAttentionConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.stack = RecurrentEncoder(
            config.embedding_size,
            config.hidden_size,
            config.num_layers,
            config.cell,
            config.bidirectional,
            config.dropout,
        )

    @property
    def output_size(self) -> int:
        """Width of the outputs."""
        return self.stack.output_size

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, Any]:
        """See the module."""
        outputs, final = self.stack(self.dropout(embedded), lengths)
        return outputs, final


class RecurrentReplyDecoder(nn.Layer):
    """The attention cell, step by step, with the weights that copying needs."""

    def __init__(self, config: LstmAttentionConfig, memory_size: int) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.bridge = StateBridge(memory_size, config.hidden_size, config.num_layers, config.cell)
        self.cell = AttentionCell(
            config.embedding_size,
            config.hidden_size,
            memory_size,
            config.num_layers,
            config.cell,
            config.score,
            config.dropout,
            config.input_feeding,
        )

    def prepare(self, outputs: Tensor, real: Tensor, final: Any) -> tuple[AttentionMemory, Any]:
        """See the module."""
        return self.cell.prepare_memory(outputs, real), self.cell.initial_states(self.bridge(final))

    def forward(self, embedded: Tensor, memory: AttentionMemory, past: Any) -> tuple[Tensor, Tensor, Any]:
        """See the module."""
        embedded = self.dropout(embedded)
        hidden, weights = [], []
        for position in range(embedded.shape[1]):
            output, alignment, past = self.cell.attend(embedded[:, position], past, memory)
            hidden.append(output)
            weights.append(alignment)
        return paddle.stack(hidden, axis=1), paddle.stack(weights, axis=1), past


def _positions(config: TransformerConfig) -> nn.Layer:
    if config.positions == "sinusoidal":
        return SinusoidalPositions(max_length=config.max_positions, width=config.width)
    return LearnedPositions(max_length=config.max_positions, width=config.width)


def _causal(length: int, offset: int) -> Tensor | None:
    """Additive mask [T, past + T]; a single position needs none."""
    return additive_mask(causal_mask(offset + length)[offset:]) if length > 1 else None


class TransformerContextEncoder(nn.Layer):
    """Positions, embedding dropout, and the Transformer's encoder."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.positions = _positions(config)
        self.dropout = Dropout(config.dropout)
        self.output_size = config.width
        self.stack = TransformerEncoder(
            config.encoder_layers,
            config.width,
            config.num_heads,
            config.inner_width,
            config.dropout,
            config.norm,
            config.activation,
            config.bias,
        )

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, None]:
        """See the module."""
        positions = self.positions(embedded.shape[1]).expand_as(embedded)
        x = self.dropout(embedded + positions)  # [B, S, D]
        return self.stack(x, additive_mask(real).unsqueeze([1, 2])), None


class TransformerReplyDecoder(nn.Layer):
    """Positions, embedding dropout, and the Transformer's decoder with its cache."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.positions = _positions(config)
        self.dropout = Dropout(config.dropout)
        self.stack = TransformerDecoder(
            config.decoder_layers,
            config.width,
            config.num_heads,
            config.inner_width,
            config.dropout,
            config.norm,
            config.activation,
            config.bias,
        )

    def prepare(self, outputs: Tensor, real: Tensor, final: None) -> tuple[AttendedMemory, None]:
        """See the module."""
        return _attended(self.stack.prepare_memory(outputs), real), None

    def forward(
        self, embedded: Tensor, memory: AttendedMemory, past: list[KeyValue] | None
    ) -> tuple[Tensor, Tensor, list[KeyValue]]:
        """See the module."""
        length, offset = embedded.shape[1], 0 if past is None else past[0][0].shape[2]
        x = self.dropout(embedded + self.positions(length, offset).expand_as(embedded))  # [B, T, D]
        x, past, weights = self.stack(x, memory.layers, _causal(length, offset), memory.mask, past)
        return x, weights * memory.real, past


class ConvolutionalContextEncoder(nn.Layer):
    """The encoder with convolutions, and its timing signal."""

    def __init__(self, config: ConvolutionalTransformerConfig) -> None:
        super().__init__()
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.output_size = config.width
        self.stack = ConvolutionalEncoder(config.embedding_size, config.num_layers, _sizes(config))

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, None]:
        """See the module."""
        mask = additive_mask(real).unsqueeze([1, 2])  # [B, 1, 1, S]
        positions = self.positions(embedded.shape[1])
        return self.stack(embedded, positions, mask, real.astype(embedded.dtype).unsqueeze(-1)), None


class ConvolutionalReplyDecoder(nn.Layer):
    """The decoder with convolutions, and its timing signal."""

    def __init__(self, config: ConvolutionalTransformerConfig) -> None:
        super().__init__()
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.stack = ConvolutionalDecoder(config.embedding_size, config.num_layers, _sizes(config))

    def prepare(self, outputs: Tensor, real: Tensor, final: None) -> tuple[AttendedMemory, None]:
        """See the module."""
        return _attended(self.stack.prepare_memory(outputs), real), None

    def forward(self, embedded: Tensor, memory: AttendedMemory, past: Any) -> tuple[Tensor, Tensor, Any]:
        """See the module."""
        length, offset = embedded.shape[1], 0 if past is None else past[0].self_attention[0].shape[2]
        x, past, weights = self.stack(
            embedded,
            self.positions(length, offset),
            memory.layers,
            _causal(length, offset),
            memory.mask,
            past,
        )
        return x, weights * memory.real, past


class CausalMemory(NamedTuple):
    """The context as a causal reply sees it."""

    layers: list[KeyValue]
    mask: Tensor  # additive [B, 1, 1, S]
    real: Tensor  # float [B, 1, S], 1 on real positions
    keys: Tensor  # of the copying head [B, S, depth]
    lengths: Tensor  # [B]


class CausalContextEncoder(nn.Layer):
    """Positions, embedding dropout, and the causal stack; its final states are keys and values."""

    def __init__(self, config: CausalTransformerConfig) -> None:
        super().__init__()
        self.output_size = config.width
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.dropout = Dropout(config.dropout)
        self.stack = CausalTransformer(
            config.num_layers,
            config.width,
            config.num_heads,
            config.inner_width,
            config.dropout,
            config.activation,
            config.bias,
        )

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, Any]:
        """See the module."""
        positions = self.positions(embedded.shape[1]).expand_as(embedded)
        x = self.dropout(embedded + positions)  # [B, S, D]
        outputs, layers = self.stack.read(x)
        return outputs, (layers, lengths)


class CausalReplyDecoder(nn.Layer):
    """The encoder's own stack, going on after each context's last real position, and the head that copies."""

    def __init__(self, config: CausalTransformerConfig, encoder: CausalContextEncoder) -> None:
        super().__init__()
        self._encoder = (encoder,)  # a tuple, because the layers belong to the encoder
        self.copy = CopyAttention(config.width, config.copy_depth)

    def prepare(self, outputs: Tensor, real: Tensor, final: Any) -> tuple[CausalMemory, None]:
        """See the module."""
        layers, lengths = final
        mask = additive_mask(real).unsqueeze([1, 2])  # [B, 1, 1, S]
        copied = real.astype("float32").unsqueeze(1)  # [B, 1, S]
        return CausalMemory(layers, mask, copied, self.copy.prepare(outputs), lengths), None

    def forward(
        self, embedded: Tensor, memory: CausalMemory, past: list[KeyValue] | None
    ) -> tuple[Tensor, Tensor, list[KeyValue]]:
        """See the module."""
        encoder = self._encoder[0]
        length, offset = embedded.shape[1], 0 if past is None else past[0][0].shape[2]
        places = memory.lengths.unsqueeze(1) + paddle.arange(offset, offset + length)  # [B, T]
        x = encoder.dropout(embedded + F.embedding(places, encoder.positions.table))  # [B, T, D]
        x, past = encoder.stack(x, memory.layers, memory.mask, past)
        weights = self.copy(x, memory.keys, memory.mask.squeeze(1))  # [B, T, S]
        return x, weights * memory.real, past


def _attended(layers: list[KeyValue], real: Tensor) -> AttendedMemory:
    # The softmax leaves about 1e-28 on padding; the product with `real` makes it 0, as copying wants it.
    return AttendedMemory(layers, additive_mask(real).unsqueeze([1, 2]), real.astype("float32").unsqueeze(1))


def _sizes(config: ConvolutionalTransformerConfig) -> LayerSizes:
    return LayerSizes(
        config.width,
        config.num_heads,
        config.key_depth,
        config.value_depth,
        config.inner_width,
        config.feed_forward,
        config.dropout,
    )


def build_family(config: FamilyConfig) -> tuple[Any, Any]:
    """Encoder and decoder of the family that ``model.name`` chooses."""
    if isinstance(config, LstmAttentionConfig):
        encoder = RecurrentContextEncoder(config)
        return encoder, RecurrentReplyDecoder(config, encoder.output_size)
    if isinstance(config, TransformerConfig):
        return TransformerContextEncoder(config), TransformerReplyDecoder(config)
    if isinstance(config, CausalTransformerConfig):
        causal = CausalContextEncoder(config)
        return causal, CausalReplyDecoder(config, causal)
    return ConvolutionalContextEncoder(config), ConvolutionalReplyDecoder(config)
