"""The families by name, as networks and in NumPy; Paddle is imported where it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddle_dialog.config.models import (
    CausalLmConfig,
    CausalTransformerConfig,
    FamilyConfig,
    LanguageModelConfig,
    LstmAttentionConfig,
    TransformerConfig,
)
from paddle_dialog.errors import UserError
from paddle_dialog.models.numpy_causal_transformer import (
    NumpyCausalDecoder,
    NumpyCausalEncoder,
    NumpyCausalLm,
)
from paddle_dialog.models.numpy_layers import NumpyDecoder, NumpyEncoder
from paddle_dialog.models.numpy_operators import Weights, require_supported
from paddle_dialog.models.numpy_recurrent import NumpyLstmDecoder, NumpyLstmEncoder, NumpyRecurrentLm
from paddle_dialog.models.numpy_transformer import NumpyTransformerDecoder, NumpyTransformerEncoder

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from paddle import nn

    from paddle_dialog.models.networks import Decoder, Encoder

# Encoder and decoder of each family in NumPy; `networks.PAIRS` has those of Paddle.
NUMPY_PAIRS: dict[str, tuple[Any, Any]] = {
    LstmAttentionConfig.name: (NumpyLstmEncoder, NumpyLstmDecoder),
    TransformerConfig.name: (NumpyTransformerEncoder, NumpyTransformerDecoder),
    CausalTransformerConfig.name: (NumpyCausalEncoder, NumpyCausalDecoder),
}


def build_pair(config: FamilyConfig) -> tuple[Encoder, Decoder]:
    """Build untrained encoder and decoder of the family that `config.name` chooses.

    Raises:
        UserError: there is none of that name.
    """
    from paddle_dialog.models.networks import PAIRS

    if config.name not in PAIRS:
        raise UserError(
            f"model.name: '{config.name}' is unknown; this version has {', '.join(sorted(PAIRS))}"
        )
    encoder = build_encoder(config)
    return encoder, PAIRS[config.name][1](config, encoder)


def build_encoder(config: FamilyConfig) -> Encoder:
    """Return the untrained encoder of a family alone, for a model that writes no text."""
    from paddle_dialog.models.networks import PAIRS

    encoder: Encoder = PAIRS[config.name][0](config)
    return encoder


def numpy_pair(config: FamilyConfig, weights: Weights) -> tuple[NumpyEncoder, NumpyDecoder]:
    """Make encoder and decoder from the weights `encoder.…` and `decoder.…` of a network."""
    encoder = numpy_encoder(config, weights)
    return encoder, NUMPY_PAIRS[config.name][1](config, weights, encoder)


def numpy_encoder(config: FamilyConfig, weights: Weights) -> NumpyEncoder:
    """Return the encoder of the weights `encoder.…` of a network alone."""
    require_supported("model.name", config.name, *NUMPY_PAIRS)
    encoder: NumpyEncoder = NUMPY_PAIRS[config.name][0](config, weights)
    return encoder


def build_lm(config: LanguageModelConfig, vocab_size: int, rows: int) -> nn.Layer:
    """Return an untrained language model; a recurrent one keeps a state for each of the batch's `rows`."""
    from paddle_dialog.models import networks

    if isinstance(config, CausalLmConfig):
        return networks.CausalLm(config, vocab_size)
    return networks.RecurrentLm(config, vocab_size, rows)


def numpy_lm(config: LanguageModelConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return a language model in NumPy, which implements `StepModel`."""
    if isinstance(config, CausalLmConfig):
        return NumpyCausalLm(config, vocab_size, arrays)
    return NumpyRecurrentLm(config, vocab_size, arrays)
