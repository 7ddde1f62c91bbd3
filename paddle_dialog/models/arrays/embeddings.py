"""Embedding tables and the output layer of a model."""

from __future__ import annotations

import numpy as np

from paddle_dialog.config.models import FamilyConfig
from paddle_dialog.models.arrays.operators import NumpyLinear, Weights
from paddle_dialog.text.vocabulary import Vocabulary


class Embeddings:
    """The tables of source and target, and the output layer, which may be the target's table.

    Args:
        config: of the network.
        vocab_size: V.
        weights: of the network.
        source_name: of the source's table.
        output_name: of the output layer.

    Attributes:
        source: the vector of each id of a source, not yet scaled [V, E].
        target: the same of a target.
        factor: by which both are scaled.
        output: hidden to logits.
    """

    def __init__(
        self, config: FamilyConfig, vocab_size: int, weights: Weights, source_name: str, output_name: str
    ) -> None:
        shape = (vocab_size, config.embedding_size)
        source = target = weights.take(f"{source_name}.table.weight", *shape)
        if not config.share_embeddings:
            target = weights.take("own_target_embedding.table.weight", *shape)
        self.source = without_padding(source)
        self.target = self.source if target is source else without_padding(target)
        self.factor = np.float32(config.embedding_size**0.5 if config.scale_embeddings else 1.0)
        self.output = (
            NumpyLinear(
                target.T, weights.take(f"{output_name}.bias", vocab_size) if config.output_bias else None
            )
            if config.tie_output
            else NumpyLinear.named(weights, output_name, config.width, vocab_size, config.output_bias)
        )


def without_padding(table: np.ndarray) -> np.ndarray:
    """Return an embedding table [V, D] with a zero row for padding.

    A table that is also the output layer's weight may have any values there.
    """
    if not table[Vocabulary.pad_id].any():
        return table
    table = table.copy()
    table[Vocabulary.pad_id] = 0
    return table
