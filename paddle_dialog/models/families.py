"""The families by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paddle_dialog.config.models import (
    CausalTransformerConfig,
    ConvolutionalTransformerConfig,
    FamilyConfig,
    LstmAttentionConfig,
    TransformerConfig,
)
from paddle_dialog.errors import UserError
from paddle_dialog.models.causal_transformer.network import causal_pair
from paddle_dialog.models.convolutional_transformer.network import convolutional_pair
from paddle_dialog.models.lstm_attention.network import LstmEncoder, lstm_pair
from paddle_dialog.models.pair import Decoder, Encoder
from paddle_dialog.models.transformer.network import TransformerEncoder, transformer_pair

PAIRS: Mapping[str, Callable[[Any], tuple[Encoder, Decoder]]] = {
    LstmAttentionConfig.name: lstm_pair,
    TransformerConfig.name: transformer_pair,
    ConvolutionalTransformerConfig.name: convolutional_pair,
    CausalTransformerConfig.name: causal_pair,
}


def build_pair(config: FamilyConfig) -> tuple[Encoder, Decoder]:
    """Build untrained encoder and decoder of the family that `config.name` chooses.

    Raises:
        UserError: there is none of that name.
    """
    if config.name not in PAIRS:
        raise UserError(
            f"model.name: '{config.name}' is unknown; this version has {', '.join(sorted(PAIRS))}"
        )
    return PAIRS[config.name](config)


def build_encoder(config: LstmAttentionConfig | TransformerConfig) -> Encoder:
    """Return the untrained encoder of a family alone, for a model that writes no text."""
    return LstmEncoder(config) if isinstance(config, LstmAttentionConfig) else TransformerEncoder(config)
