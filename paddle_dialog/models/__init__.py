"""The two model families, chosen by ``model.name``."""

from __future__ import annotations

from typing import Any

from paddle import nn

from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig
from paddle_dialog.models.fused_lstm import FusedLstm
from paddle_dialog.models.lstm_attention import LstmAttention
from paddle_dialog.models.transformer import Transformer

__all__ = ["FusedLstm", "LstmAttention", "Transformer", "build_model", "for_decoding"]


def build_model(config: ModelConfig, vocab_size: int) -> LstmAttention | Transformer:
    """The untrained network of a ``model`` section for a vocabulary of ``vocab_size`` tokens."""
    if isinstance(config, LstmAttentionConfig):
        return LstmAttention(config, vocab_size)
    return Transformer(config, vocab_size)


def for_decoding(network: nn.Layer) -> Any:
    """The fastest ``StepModel`` with a trained network's present weights; the network itself where none is faster."""
    if FusedLstm.serves(network):
        assert isinstance(network, LstmAttention)
        return FusedLstm(network)
    return network
