"""A trained model, whose network is built only when something needs it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.bundle.folder import THROUGH_PADDLE, Bundle
from paddle_dialog.bundle.weights import set_weights
from paddle_dialog.device import current_is_cpu
from paddle_dialog.errors import UnsupportedModelError
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from paddle import nn

logger = logging.getLogger("paddle_dialog")


class TrainedModel:
    """A trained model: its vocabularies, the task's own files, and its network, built on demand.

    Args:
        build: makes the network, with its weights.
        files: the task's own files in a bundle, by name.
        weights: by structured name, for a model in NumPy; None for a network that exists already.
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
        cls,
        bundle: Bundle,
        build: Callable[[Mapping[str, int]], nn.Layer],
        where: Path,
        through_paddle: bool = False,
    ) -> TrainedModel:
        """Return the model of a bundle.

        Args:
            build: makes the untrained network of the sizes of its vocabularies.
            through_paddle: never answer by arrays.
        """

        def network() -> nn.Layer:
            built = build({name: len(vocabulary) for name, vocabulary in bundle.vocabularies.items()})
            set_weights(built, bundle.weights, where)
            return built

        if THROUGH_PADDLE in bundle.extra:
            _warn(where, bundle.extra[THROUGH_PADDLE].decode("utf-8", "replace").strip())
            through_paddle = True
        weights = None if through_paddle else bundle.weights
        return cls(bundle.vocabularies, network, bundle.extra, weights, where)

    @classmethod
    def of_network(cls, network: nn.Layer, vocabularies: Mapping[str, Vocabulary]) -> TrainedModel:
        """Return a model around a network that exists already, e.g. one in training."""
        return cls(vocabularies, lambda: network)

    @cached_property
    def network(self) -> nn.Layer:
        """The network with its weights, in evaluation mode."""
        network = self._build()
        network.eval()
        return network

    def fastest(
        self,
        make: Callable[[Mapping[str, np.ndarray]], Any],
        through_paddle: Callable[[nn.Layer], Any] | None = None,
    ) -> Any:
        """Return a model in NumPy, or one through Paddle: for a GPU, and for a network that exists already.

        Where the arrays do not support the network, Paddle answers too, and the log says why.

        Args:
            make: makes the model in NumPy.
            through_paddle: makes that of the network; by default one that reads the prefix again at each step.
        """
        if self._weights is not None and current_is_cpu():
            try:
                return make(self._weights)
            except UnsupportedModelError as reason:
                _warn(self._where, reason)
        if through_paddle is not None:
            return through_paddle(self.network)
        from paddle_dialog.decoding.paddle_steps import step_model  # imports Paddle

        return step_model(self.network)


def _warn(where: Path | str, reason: object) -> None:
    logger.warning("%s: %s; answering through Paddle, which starts seconds later", where, reason)
