"""Step models through Paddle: a network that reads the whole prefix again at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_dialog.decoding.interface import StepModel


class PrefixState(NamedTuple):
    """What a step reads; the first axis of all arrays is the row."""

    source: Any  # ids [N, S], or a named tuple of arrays
    lengths: np.ndarray  # of the sources [N]
    prefix: np.ndarray  # tokens so far, begin token first [N, t]


class PrefixModel:
    """Implements `StepModel` for a network without steps of its own.

    Slower than steps in NumPy, whose costs do not grow with the prefix; it serves a GPU, displays in training, and
    families without NumPy steps.

    Args:
        network: `next_scores(source, lengths, target)` scores the token after each target.
    """

    def __init__(self, network: nn.Layer) -> None:
        self.network: Any = network
        self.returns_log_probabilities = bool(getattr(network, "returns_log_probabilities", False))

    def encode(self, source: Any, lengths: np.ndarray) -> PrefixState:
        """Return the state before the begin token."""
        return PrefixState(source, lengths, np.zeros((len(lengths), 0), dtype=np.int64))

    def step(self, token: np.ndarray, state: PrefixState) -> tuple[np.ndarray, PrefixState]:
        """Score after one more token [N]; return [N, V] and the new state."""
        prefix = np.concatenate([state.prefix, token[:, None]], axis=1)  # [N, t + 1]
        scores = self.call(self.network.next_scores, state.source, state.lengths, prefix)
        return scores, state._replace(prefix=prefix)

    def reorder(self, state: PrefixState, index: np.ndarray) -> PrefixState:
        """Return the state of the rows `index` [M]."""
        return PrefixState(*(_each(lambda rows: rows[index], part) for part in state))

    def attention_weights(self, source: Any, lengths: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the attention [B, T, S] of each target position over the source."""
        return self.call(self.network.attention_weights, source, lengths, target)

    def call(self, function: Callable[..., Tensor], *arrays: Any) -> np.ndarray:
        """Call a method of the network, without dropout and gradients, with arrays in and out."""
        with evaluation_mode(self.network):
            output = function(*(_each(paddle.to_tensor, part) for part in arrays))
        return np.asarray(output.astype("float32").numpy())


def _each(function: Callable[[Any], Any], source: Any) -> Any:
    """Apply a function to an array, or to each of a named tuple that is not None."""
    if isinstance(source, tuple):
        parts: Any = [None if part is None else function(part) for part in source]
        return type(source)(*parts)
    return function(source)


@contextmanager
def evaluation_mode(network: nn.Layer) -> Iterator[None]:
    """Switch dropout and gradients off within a `with` block."""
    training = network.training
    network.eval()
    try:
        with paddle.no_grad():
            yield
    finally:
        if training:
            network.train()


def step_model(network: nn.Layer) -> StepModel | PrefixModel:
    """Return a network that has steps of its own, as pre-trained ones do, or else its `PrefixModel`."""
    return network if hasattr(network, "step") else PrefixModel(network)
