"""The families by name, over arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paddle_dialog.config.models import (
    CausalTransformerConfig,
    FamilyConfig,
    LstmAttentionConfig,
    TransformerConfig,
)
from paddle_dialog.models.arrays.operators import UnsupportedModelError, Weights
from paddle_dialog.models.arrays.pair import NumpyDecoder, NumpyEncoder
from paddle_dialog.models.causal_transformer.arrays import numpy_causal_pair
from paddle_dialog.models.lstm_attention.arrays import NumpyLstmEncoder, numpy_lstm_pair, require_lstm
from paddle_dialog.models.transformer.array_layers import require_relu
from paddle_dialog.models.transformer.arrays import NumpyTransformerEncoder, numpy_transformer_pair

NUMPY_PAIRS: Mapping[str, Callable[[Any, Weights], tuple[NumpyEncoder, NumpyDecoder]]] = {
    LstmAttentionConfig.name: numpy_lstm_pair,
    TransformerConfig.name: numpy_transformer_pair,
    CausalTransformerConfig.name: numpy_causal_pair,
}


def numpy_pair(config: FamilyConfig, weights: Weights) -> tuple[NumpyEncoder, NumpyDecoder]:
    """Make encoder and decoder from the weights `encoder.…` and `decoder.…` of a network.

    Raises:
        UnsupportedModelError: the family has no NumPy steps for these settings, or a weight is missing or misshapen.
    """
    if config.name not in NUMPY_PAIRS:
        raise UnsupportedModelError(f"the model is {config.name}")
    return NUMPY_PAIRS[config.name](config, weights)


def numpy_encoder(config: LstmAttentionConfig | TransformerConfig, weights: Weights) -> NumpyEncoder:
    """Return the encoder of the weights `encoder.…` of a network alone; raise as `numpy_pair`."""
    if isinstance(config, LstmAttentionConfig):
        require_lstm(config)
        return NumpyLstmEncoder(config, weights)
    require_relu(config)
    return NumpyTransformerEncoder(config, weights)
