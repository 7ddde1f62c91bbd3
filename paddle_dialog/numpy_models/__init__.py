"""Trained models of both families as step models over NumPy arrays, which answer on the CPU without Paddle.

A search steps with a handful of rows. There a step of Paddle's is mostly the launching of its operators, and a
start mostly the import of Paddle; NumPy spares both. The networks in ``paddle_dialog.models`` stay the definition:
the tests hold these to their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig
from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.models.older_names import SEQ2SEQ_NAMES, with_present_names
from paddle_dialog.numpy_models.lstm import NumpyLstm
from paddle_dialog.numpy_models.operators import NotServed, Weights
from paddle_dialog.numpy_models.transformer import NumpyTransformer


def numpy_model(config: ModelConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> StepModel:
    """A trained model over arrays.

    Args:
        config: the model section it was trained with.
        vocab_size: V.
        arrays: its weights by structured name.

    Raises:
        NotServed: it has GRU cells or GELU, or its weights are not the config's.
    """
    weights = Weights(with_present_names(arrays, SEQ2SEQ_NAMES))
    model: StepModel
    if isinstance(config, LstmAttentionConfig):
        if config.cell != "lstm":
            raise NotServed(f"cell is {config.cell}")
        model = NumpyLstm(config, vocab_size, weights)
    else:
        if config.activation != "relu":
            raise NotServed(f"activation is {config.activation}")
        model = NumpyTransformer(config, vocab_size, weights)
    weights.check_all_taken()
    return model
