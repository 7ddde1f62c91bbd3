"""The two model families, chosen by ``model.name``."""

from __future__ import annotations

from paddle_dialog.config.schema import LstmAttentionConfig, ModelConfig
from paddle_dialog.models.lstm_attention import LstmAttention
from paddle_dialog.models.transformer import Transformer

__all__ = ["LstmAttention", "Transformer", "build_model"]


def build_model(config: ModelConfig, vocab_size: int) -> LstmAttention | Transformer:
    """The untrained network of a ``model`` section for a vocabulary of ``vocab_size`` tokens."""
    if isinstance(config, LstmAttentionConfig):
        return LstmAttention(config, vocab_size)
    return Transformer(config, vocab_size)
