"""The recurrent pair: encoder, bridge, and attention cell."""

from __future__ import annotations

from typing import Any

from paddle import Tensor

from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.layers.recurrent import AttentionCell, AttentionMemory, RecurrentEncoder, StateBridge
from paddle_dialog.models.pair import Decoder, Encoder


class LstmEncoder(Encoder):
    """LSTM layers; their final states are the decoder's start."""

    def __init__(self, config: LstmAttentionConfig) -> None:
        super().__init__()
        self.stack = RecurrentEncoder(
            config.embedding_size, config.hidden_size, config.num_layers, config.bidirectional, config.dropout
        )
        self.output_size = self.stack.output_size

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, Any]:
        """Encode; see `Encoder`."""
        outputs, final = self.stack(embedded, lengths)
        return outputs, final


class LstmDecoder(Decoder):
    """The attention cell; its past is the states of its layers and the previous output."""

    def __init__(self, config: LstmAttentionConfig, memory_size: int) -> None:
        super().__init__()
        self.bridge = StateBridge(memory_size, config.hidden_size, config.num_layers)
        self.cell = AttentionCell(
            config.embedding_size,
            config.hidden_size,
            memory_size,
            config.num_layers,
            config.score,
            config.dropout,
            config.input_feeding,
        )

    def prepare(self, outputs: Tensor, real: Tensor, final: Any) -> tuple[AttentionMemory, Any]:
        """Project the source and bridge the states; the previous output is zero."""
        return self.cell.prepare_memory(outputs, real), self.cell.initial_states(self.bridge(final))

    def forward(self, embedded: Tensor, memory: AttentionMemory, past: Any) -> tuple[Tensor, Tensor]:
        """Decode all positions of known targets; see `Decoder`."""
        return self.cell.unroll(embedded, past, memory)

    def step(self, embedded: Tensor, memory: AttentionMemory, past: Any) -> tuple[Tensor, Tensor, Any]:
        """Decode one more position of every row; see `Decoder`."""
        return self.cell(embedded, past, memory)


def lstm_pair(config: LstmAttentionConfig) -> tuple[Encoder, Decoder]:
    """Build encoder and decoder."""
    encoder = LstmEncoder(config)
    return encoder, LstmDecoder(config, encoder.output_size)
