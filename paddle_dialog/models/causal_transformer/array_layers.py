"""The causal stack over arrays: it reads a source and goes on from it, row by row or over many texts at once.

The keys and values of a source are kept once, however many rows go on from it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paddle_dialog.layers.sizes import LayerSizes, StackSizes
from paddle_dialog.models.arrays.attention_cache import AttentionCache
from paddle_dialog.models.arrays.operators import NumpyLayerNorm, Weights, padding_mask, softmax
from paddle_dialog.models.arrays.text_tree import TextTree
from paddle_dialog.models.transformer.array_layers import Layer, attend


class NumpyCausalTransformer:
    """The numbers of `layers.causal_transformer.CausalTransformer` with ReLU.

    Args:
        sizes: of the network.
        weights: of the network.
        name: of the stack.
    """

    def __init__(self, sizes: StackSizes, weights: Weights, name: str) -> None:
        self._layers = [
            _CausalLayer(sizes, weights, f"{name}.layers.{n}", 2 * n) for n in range(sizes.num_layers)
        ]
        self._norm = NumpyLayerNorm(weights, f"{name}.final_norm", sizes.width)

    def read(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read embedded sources [B, S, D], padded at the end: outputs [B, S, D], keys and values [B, S, 2L, D]."""
        batch, length, width = x.shape
        mask = _causal_mask(length)
        memory = np.empty((batch, length, 2 * len(self._layers), width), dtype=np.float32)
        for layer in self._layers:
            x = layer.read(x, mask, memory)  # [B, S, D]
        return self._norm(x), memory

    def step(self, x: np.ndarray, cache: AttentionCache) -> tuple[np.ndarray, AttentionCache]:
        """Decode one more position of every row, whose input is `x` [N, D].

        Returns:
            Output [N, D], and the new cache, which takes over the arrays of the old.
        """
        cache = cache.with_one_more()
        for layer in self._layers:
            x = layer.step(x, cache)  # [N, D]
        return self._norm(x), cache

    def follow(self, x: np.ndarray, tree: TextTree, memory: np.ndarray) -> np.ndarray:
        """Decode all positions of many texts after one source.

        Args:
            x: input of each node of the tree [N, D].
            tree: of the texts.
            memory: of the source [S, 2L, D], without padding.

        Returns:
            Outputs of the nodes [N, D].
        """
        mask = _causal_mask(tree.paths.shape[1])
        for layer in self._layers:
            x = layer.follow(x, tree, memory, mask)  # [N, D]
        return self._norm(x)


class _CausalLayer(Layer):
    """A pre-norm layer; its keys and values are parts `part` and `part + 1` of the caches."""

    def __init__(self, sizes: LayerSizes, weights: Weights, name: str, part: int) -> None:
        super().__init__(sizes, weights, name, pre_norm=True)
        self._part = part

    def read(self, x: np.ndarray, mask: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Map a source [B, S, D] to [B, S, D] and fill its memory; `mask` is additive [S, S]."""

        def attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y).reshape(*y.shape[:2], 3, self._width)  # [B, S, 3, D]
            memory[:, :, self._part : self._part + 2] = fused[:, :, 1:]
            query, key, value = (fused[:, :, part] for part in range(3))  # [B, S, D] each
            return self._output(attend(query, key, value, mask, self._heads)[0])

        return self._sublayers(x, attention)

    def step(self, x: np.ndarray, cache: AttentionCache) -> np.ndarray:
        """Map [N, D] at the last of `cache.length` positions to [N, D], and fill the cache there."""
        part, length, rows = self._part, cache.length, cache.rows

        def attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y).reshape(len(y), 3, self._width)  # [N, 3, D]
            cache.past[:, length - 1, part : part + 2] = fused[:, 1:]
            query = self._scaled(fused[:, 0])  # [N, D]
            key, value = (self._split(cache.past[:, :length, part + k]) for k in range(2))  # [N, heads, T, d]
            own = np.matmul(self._split(query[:, None]), key.swapaxes(2, 3))[:, :, 0]  # [N, heads, T]
            source_key, source_value = (
                self._split(cache.memory[:, :, part + k]) for k in range(2)
            )  # [B, heads, S, d]
            grid = self._split(rows.spread(query))  # [B, heads, R, d]
            scores = np.matmul(grid, source_key.swapaxes(2, 3))  # [B, heads, R, S]
            scores += cache.mask
            weights = softmax(
                np.concatenate([self._collect(scores, cache), own], axis=2)
            )  # [N, heads, S + T]
            size = scores.shape[3]
            context = np.matmul(self._spread(weights[:, :, :size], cache), source_value)  # [B, heads, R, d]
            read = self._collect(context, cache)  # [N, heads, d]
            read += np.matmul(weights[:, :, None, size:], value)[:, :, 0]
            return self._output(read.reshape(len(y), self._width))

        return self._sublayers(x, attention)

    def follow(self, x: np.ndarray, tree: TextTree, memory: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Map the nodes of a tree [N, D] to [N, D]; `mask` is additive [T, T]."""
        paths, owners, places = tree.paths, tree.owners, tree.places

        def attention(y: np.ndarray) -> np.ndarray:
            fused = self._query_key_value(y).reshape(len(y), 3, self._width)  # [N, 3, D]
            query = self._scaled(fused[:, 0])  # [N, D]
            own_query, key, value = (
                self._split(part) for part in (query[paths], fused[:, 1][paths], fused[:, 2][paths])
            )  # [M, heads, T, d]
            own = np.matmul(own_query, key.swapaxes(2, 3)) + mask  # [M, heads, T, T]
            source_key, source_value = (
                self._split(memory[None, :, self._part + k])[0] for k in range(2)
            )  # [heads, S, d]
            scores = np.matmul(self._split(query[None])[0], source_key.swapaxes(1, 2))  # [heads, N, S]
            size = scores.shape[2]
            of_node = own[owners, :, places].swapaxes(0, 1)  # [heads, N, T]
            weights = softmax(np.concatenate([scores, of_node], axis=2))  # [heads, N, S + T]
            read = np.matmul(weights[:, :, :size], source_value).swapaxes(0, 1)  # [N, heads, d]
            of_text = weights[:, :, size:].swapaxes(0, 1)[paths]  # [M, T, heads, T]
            own = np.matmul(of_text.swapaxes(1, 2), value)  # [M, heads, T, d]
            return self._output((read + own[owners, :, places]).reshape(len(y), self._width))

        return self._sublayers(x, attention)

    def _sublayers(self, x: np.ndarray, attention: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        x = self._residual(x, self._self_norm, attention)
        return self._residual(x, self._feed_forward_norm, self._feed_forward)

    def _scaled(self, query: np.ndarray) -> np.ndarray:
        return query * np.float32((self._width // self._heads) ** -0.5)

    def _split(self, x: np.ndarray) -> np.ndarray:
        """Split [N, T, D] into [N, heads, T, d]."""
        return x.reshape(*x.shape[:2], self._heads, -1).swapaxes(1, 2)

    def _collect(self, grid: np.ndarray, cache: AttentionCache) -> np.ndarray:
        """Return the rows [N, heads, K] of a grid [B, heads, R, K]."""
        batch, heads, slots, _ = grid.shape
        rows = cache.rows.collect(grid.swapaxes(1, 2).reshape(batch, slots, -1))  # [N, heads * K]
        return rows.reshape(len(rows), heads, -1)

    def _spread(self, rows: np.ndarray, cache: AttentionCache) -> np.ndarray:
        """Return rows [N, heads, K] as a grid [B, heads, R, K]."""
        return self._split(cache.rows.spread(rows.reshape(len(rows), -1)))


def _causal_mask(length: int) -> np.ndarray:
    """Return the additive mask of attention scores: 0 at and before each position, very low after it, [T, T]."""
    return padding_mask(np.arange(1, length + 1), length)
