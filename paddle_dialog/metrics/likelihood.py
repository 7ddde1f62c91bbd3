"""How likely a network finds the true targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import paddle
from paddle import io, nn

from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.decoding.interface import evaluation_mode


class TokenLosses(NamedTuple):
    """The losses of one batch.

    Args:
        indices: of its examples [B].
        nll: -log p of each target token, 0 where there is none, in nats, float64 [B, T].
        labels: what the criterion was given, arrays.
    """

    indices: list[int]
    nll: np.ndarray
    labels: Sequence[np.ndarray]


def token_losses(
    network: nn.Layer,
    criterion: nn.Layer,
    dataset: io.Dataset,
    lengths: np.ndarray,
    collate: Callable[[list[Any]], Sequence[np.ndarray]],
    batch_size: int,
    inputs: int = 3,
) -> Iterator[TokenLosses]:
    """Compute the loss of every target token, batched by length.

    Args:
        network: called with the first arrays of a batch.
        criterion: called with its outputs and the remaining arrays, the labels; keeps `token_nll` [B, T].
        dataset: N examples.
        lengths: their sort keys [N] or [N, 2].
        collate: makes a batch of arrays of examples.
        batch_size: examples of a batch.
        inputs: how many arrays the network takes; three are source, lengths and target.
    """
    with paddle.no_grad(), evaluation_mode(network):
        for indices in LengthBucketSampler(lengths, batch_size, shuffle=False):
            arrays = collate([dataset[index] for index in indices])
            tensors = [paddle.to_tensor(array) for array in arrays]
            outputs = network(*tensors[:inputs])
            criterion(*(outputs if isinstance(outputs, tuple) else (outputs,)), *tensors[inputs:])
            yield TokenLosses(indices, criterion.token_nll.numpy().astype(np.float64), arrays[inputs:])
