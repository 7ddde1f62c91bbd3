"""A trained network that is built only when something needs it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from paddle_dialog.bundle.folder import set_weights
from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.device import current_is_cpu
from paddle_dialog.models.arrays.operators import NotServed
from paddle_dialog.models.numpy_seq2seq import NumpySeq2Seq

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.config.models import ModelConfig

logger = logging.getLogger("paddle_dialog")

Model = TypeVar("Model")


class TrainedNetwork:
    """The weights of a bundle, and the models made of them.

    Args:
        weights: by structured name.
        build: makes the untrained network.
        where: the bundle, for messages.
        files: the task's own files in the bundle, by name.
    """

    def __init__(
        self,
        weights: Mapping[str, np.ndarray],
        build: Callable[[], nn.Layer],
        where: Path,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self._weights = weights
        self._build = build
        self._where = where
        self.files = {} if files is None else files

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

    def over_arrays(self, make: Callable[[Mapping[str, np.ndarray]], Model]) -> Model | None:
        """Return a model over arrays, which answers on the CPU without Paddle.

        Args:
            make: makes it from the weights.

        Returns:
            None where it does not support this network, which is logged, or where the device is not a CPU.
        """
        if not current_is_cpu():
            return None
        try:
            return make(self._weights)
        except NotServed as reason:
            logger.warning(
                "%s: %s; answering through Paddle, which starts seconds later", self._where, reason
            )
            return None

    def step_model(self, config: ModelConfig, vocab_size: int) -> StepModel:
        """Return the fastest step model on the current device, on the CPU one over arrays, which needs no Paddle.

        Args:
            config: the model section of the bundle.
            vocab_size: V.

        Raises:
            UserError: the weights belong to another model.
        """
        model = self.over_arrays(partial(NumpySeq2Seq, config, vocab_size))
        if model is not None:
            return model
        network: StepModel = self.network
        return network
