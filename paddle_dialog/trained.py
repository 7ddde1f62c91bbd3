"""A trained network that is built only when something needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from paddle_dialog.bundle import set_weights
from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.device import current_is_cpu
from paddle_dialog.numpy_models import numpy_model

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.config.schema import ModelConfig

Model = TypeVar("Model")


class TrainedNetwork:
    """The weights of a bundle and what they become.

    Args:
        weights: by structured name.
        build: makes the untrained network.
        where: the bundle, for messages.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], build: Callable[[], nn.Layer], where: Path) -> None:
        self._weights = weights
        self._build = build
        self._where = where

    @cached_property
    def network(self) -> nn.Layer:
        """The network with its weights, in evaluation mode.

        Raises:
            UserError: the weights belong to another model.
        """
        network = self._build()
        set_weights(network, self._weights, self._where)
        network.eval()
        return network

    def over_arrays(self, make: Callable[[Mapping[str, np.ndarray]], Model | None]) -> Model | None:
        """A model over arrays, which answers on the CPU without Paddle.

        Args:
            make: makes it of the weights, or nothing where it does not serve this network.

        Returns:
            None where the current device is no CPU, too.
        """
        return make(self._weights) if current_is_cpu() else None

    def step_model(self, config: ModelConfig, vocab_size: int) -> StepModel:
        """The fastest step model on the current device, on the CPU one over arrays, which needs no Paddle.

        Args:
            config: the model section of the bundle.
            vocab_size: V.

        Raises:
            UserError: the weights belong to another model.
        """
        model = self.over_arrays(partial(numpy_model, config, vocab_size))
        if model is not None:
            return model
        from paddle_dialog.models import for_decoding  # importing Paddle takes seconds

        fused: StepModel = for_decoding(self.network)
        return fused
