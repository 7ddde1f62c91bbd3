"""The network with arrays in and out, computed without Paddle or by Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from paddle_dialog.models.families import numpy_encoder
from paddle_dialog.models.numpy_operators import NumpyLinear, Weights, padding_mask, softmax, without_padding
from tasks.sentiment.config import SentimentConfig


class NumpySentiment:
    """`SentimentNetwork` over arrays.

    Args:
        config: of the network.
        vocab_size: V.
        arrays: its weights by structured name.

    Raises:
        UnsupportedModelError: the family has no arrays for these settings, or the weights are not the config's.
    """

    def __init__(self, config: SentimentConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        model, weights = config.model, Weights(arrays)
        table = without_padding(weights.take("embedding.table.weight", vocab_size, model.embedding_size))
        self._table = table * np.float32(model.embedding_size**0.5 if model.scale_embeddings else 1.0)
        self._encoder = numpy_encoder(model, weights)
        width = self._encoder.output_size
        self._pooling, self._query = config.pooling, None
        if config.pooling == "attention":
            self._query = NumpyLinear.named(weights, "query", width, 1, bias=False)
        self._output = weights.take("output.weight", width, 1)
        self._bias = float(weights.take("output.bias", 1)[0])
        self.linear_table = np.zeros(0, dtype=np.float32)
        if config.linear.buckets:
            self.linear_table = weights.take("linear_table", config.linear.buckets, 1)[:, 0]
        weights.check_all_taken()

    def contributions(self, ids: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, float]:
        """Return what each position of ids [B, S] adds to the logit [B, S], 0 on padding, and the bias."""
        x, _ = self._encoder.read(self._table[ids], lengths)  # [B, S, H]
        real = (np.arange(x.shape[1]) < lengths[:, None])[..., None]  # [B, S, 1]
        if self._pooling == "max":
            weights = real & (x >= np.where(real, x, -np.inf).max(axis=1, keepdims=True))  # [B, S, H]
            weights = weights / weights.sum(axis=1, keepdims=True)
        elif self._query is not None:
            scores = self._query(x)[..., 0] + padding_mask(lengths, x.shape[1])  # [B, S]
            weights = softmax(scores)[..., None]
        else:
            weights = real / lengths[:, None, None]
        return ((weights * x * real) @ self._output)[..., 0], self._bias


class PaddleSentiment:
    """`SentimentNetwork` itself, with arrays in and out.

    Args:
        network: the trained network, put into evaluation mode.
    """

    def __init__(self, network: Any) -> None:
        network.eval()
        self.network = network
        table = network.linear_table
        self.linear_table = np.zeros(0, dtype=np.float32) if table is None else table.numpy()[:, 0]

    def contributions(self, ids: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, float]:
        """See `NumpySentiment`."""
        import paddle

        with paddle.no_grad():
            shares, bias = self.network.contributions(paddle.to_tensor(ids), paddle.to_tensor(lengths))
        return shares.numpy(), float(bias.item())
