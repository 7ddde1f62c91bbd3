"""How likely a network finds the true targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from paddle import io, nn

from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.data.training_data import as_tensors, run_criterion, run_network
from paddle_dialog.decoding.paddle_steps import evaluation_mode


class TokenLosses(NamedTuple):
    """The losses of one batch."""

    indices: list[int]  # of its examples [B]
    nll: np.ndarray  # -log p of each target token, 0 where there is none, in nats, float64 [B, T]
    batch: Any  # its arrays


def token_losses(
    network: nn.Layer,
    criterion: nn.Layer,
    dataset: io.Dataset,
    lengths: np.ndarray,
    collate: Callable[[list[Any]], Any],
    batch_size: int,
) -> Iterator[TokenLosses]:
    """Compute the loss of every target token, batched by length.

    Args:
        criterion: its loss; keeps `token_nll` [B, T].
        lengths: their sort keys [N] or [N, 2].
    """
    with evaluation_mode(network):
        for indices in LengthBucketSampler(lengths, batch_size, shuffle=False):
            batch = collate([dataset[index] for index in indices])
            tensors = as_tensors(batch)
            run_criterion(criterion, run_network(network, tensors), tensors)
            yield TokenLosses(indices, criterion.token_nll.numpy().astype(np.float64), batch)
