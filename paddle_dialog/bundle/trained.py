"""A trained model, whose network is built only when something needs it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from paddle_dialog.bundle.folder import THROUGH_PADDLE, Bundle
from paddle_dialog.bundle.weights import set_weights
from paddle_dialog.device import current_is_cpu
from paddle_dialog.models.numpy_operators import UnsupportedModelError
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from paddle import nn

logger = logging.getLogger("paddle_dialog")

Model = TypeVar("Model")


class TrainedModel:
    """A trained model: its vocabularies, the task's own files, and its network, built on demand.

    Args:
        build: makes the network, with its weights.
        files: the task's own files in a bundle, by name.
        weights: by structured name, for a model over arrays; None for a network that exists already.
    """

    def __init__(
        self,
        vocabularies: Mapping[str, Vocabulary],
        build: Callable[[], nn.Layer],
        files: Mapping[str, bytes] | None = None,
        weights: Mapping[str, np.ndarray] | None = None,
        where: Path | str = "",
    ) -> None:
        self.vocabularies = vocabularies
        self.files = {} if files is None else files
        self._build = build
        self._weights = weights
        self._where = where

    @classmethod
    def of_bundle(
        cls, bundle: Bundle, build: Callable[[Mapping[str, int]], nn.Layer], where: Path
    ) -> TrainedModel:
        """Return the model of a bundle.

        Args:
            build: makes the untrained network of the sizes of its vocabularies.
        """

        def network() -> nn.Layer:
            built = build({name: len(vocabulary) for name, vocabulary in bundle.vocabularies.items()})
            set_weights(built, bundle.weights, where)
            return built

        if THROUGH_PADDLE not in bundle.extra:
            return cls(bundle.vocabularies, network, bundle.extra, bundle.weights, where)
        reason = bundle.extra[THROUGH_PADDLE].decode("utf-8", "replace").strip()
        logger.warning("%s: %s; answering through Paddle, which starts seconds later", where, reason)
        return cls(bundle.vocabularies, network, bundle.extra, None, where)

    @classmethod
    def of_network(cls, network: nn.Layer, vocabularies: Mapping[str, Vocabulary]) -> TrainedModel:
        """Return a model around a network that exists already, e.g. one in training."""
        return cls(vocabularies, lambda: network)

    @cached_property
    def network(self) -> nn.Layer:
        """The network with its weights, in evaluation mode.

        Raises:
            UserError: the weights belong to another model.
        """
        network = self._build()
        network.eval()
        return network

    def numpy_model(self, make: Callable[[Mapping[str, np.ndarray]], Model]) -> Model | None:
        """Return a model over arrays, which answers on the CPU without Paddle.

        Returns:
            None where it does not support this network, which is logged, where the device is not a CPU, or for a
            network that exists already.
        """
        if self._weights is None or not current_is_cpu():
            return None
        try:
            return make(self._weights)
        except UnsupportedModelError as reason:
            logger.warning(
                "%s: %s; answering through Paddle, which starts seconds later", self._where, reason
            )
            return None

    def fastest(self, make: Callable[[Mapping[str, np.ndarray]], Any]) -> Any:
        """Return the model over arrays that `numpy_model` returns, or else the network.

        Raises:
            UserError: the weights belong to another model.
        """
        arrays = self.numpy_model(make)
        return self.network if arrays is None else arrays
