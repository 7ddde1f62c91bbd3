"""The families by name, as networks and over arrays; an engine is imported where it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddle_dialog.config.models import (
    CausalTransformerConfig,
    ConvolutionalTransformerConfig,
    FamilyConfig,
    LstmAttentionConfig,
    TransformerConfig,
)
from paddle_dialog.errors import UserError
from paddle_dialog.models.numpy_operators import UnsupportedModelError, Weights

if TYPE_CHECKING:
    from paddle_dialog.models.numpy_state import NumpyDecoder, NumpyEncoder
    from paddle_dialog.models.pair import Decoder, Encoder

FAMILIES = (
    LstmAttentionConfig.name,
    TransformerConfig.name,
    ConvolutionalTransformerConfig.name,
    CausalTransformerConfig.name,
)


def build_pair(config: FamilyConfig) -> tuple[Encoder, Decoder]:
    """Build untrained encoder and decoder of the family that `config.name` chooses.

    Raises:
        UserError: there is none of that name.
    """
    if config.name not in FAMILIES:
        raise UserError(
            f"model.name: '{config.name}' is unknown; this version has {', '.join(sorted(FAMILIES))}"
        )
    from paddle_dialog.models.causal_transformer import causal_pair
    from paddle_dialog.models.lstm_attention import lstm_pair
    from paddle_dialog.models.transformer import transformer_pair

    if isinstance(config, LstmAttentionConfig):
        return lstm_pair(config)
    if isinstance(config, CausalTransformerConfig):
        return causal_pair(config)
    return transformer_pair(config)


def build_encoder(config: LstmAttentionConfig | TransformerConfig) -> Encoder:
    """Return the untrained encoder of a family alone, for a model that writes no text."""
    from paddle_dialog.models.lstm_attention import LstmEncoder
    from paddle_dialog.models.transformer import TransformerEncoder

    return LstmEncoder(config) if isinstance(config, LstmAttentionConfig) else TransformerEncoder(config)


def numpy_pair(config: FamilyConfig, weights: Weights) -> tuple[NumpyEncoder, NumpyDecoder]:
    """Make encoder and decoder from the weights `encoder.…` and `decoder.…` of a network.

    Raises:
        UnsupportedModelError: the family has no NumPy steps, or a weight is missing or misshapen.
    """
    if config.name not in FAMILIES or isinstance(config, ConvolutionalTransformerConfig):
        raise UnsupportedModelError(f"the model is {config.name}")
    from paddle_dialog.models.numpy_causal_transformer import numpy_causal_pair
    from paddle_dialog.models.numpy_lstm_attention import numpy_lstm_pair
    from paddle_dialog.models.numpy_transformer import numpy_transformer_pair

    if isinstance(config, LstmAttentionConfig):
        return numpy_lstm_pair(config, weights)
    if isinstance(config, CausalTransformerConfig):
        return numpy_causal_pair(config, weights)
    return numpy_transformer_pair(config, weights)


def numpy_encoder(config: LstmAttentionConfig | TransformerConfig, weights: Weights) -> NumpyEncoder:
    """Return the encoder of the weights `encoder.…` of a network alone; raise as `numpy_pair`."""
    from paddle_dialog.models.numpy_lstm_attention import NumpyLstmEncoder
    from paddle_dialog.models.numpy_transformer import NumpyTransformerEncoder

    if isinstance(config, LstmAttentionConfig):
        return NumpyLstmEncoder(config, weights)
    return NumpyTransformerEncoder(config, weights)
