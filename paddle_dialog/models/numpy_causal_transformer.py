"""The causal Transformer in NumPy: one stack reads a source and then its targets.

It decodes row by row, or many texts at once. The keys and values of a source are kept once, whatever the number of
its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paddle_dialog.config.models import CausalConfig, CausalLmConfig, CausalTransformerConfig
from paddle_dialog.errors import UserError
from paddle_dialog.layers.sinusoids import sinusoids
from paddle_dialog.models.numpy_layers import (
    AttentionCache,
    NumpyDecoder,
    NumpyTransformerLayer,
    PrefixTrie,
    causal_mask,
)
from paddle_dialog.models.numpy_operators import (
    NumpyLayerNorm,
    NumpyLinear,
    Weights,
    log_probs_of_texts,
    softmax,
    without_padding,
)
from paddle_dialog.text.vocabulary import Vocabulary


class NumpyCausalTransformer:
    """`layers.transformer.CausalTransformer` in NumPy, with the same results.

    Args:
        name: of the stack.
    """

    def __init__(self, config: CausalConfig, weights: Weights, name: str) -> None:
        self._layers = [
            _CausalLayer(config, weights, f"{name}.layers.{n}", 2 * n) for n in range(config.num_layers)
        ]
        self._norm = NumpyLayerNorm(weights, f"{name}.final_norm", config.width)

    def read(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read embedded sources [B, S, D], padded at the end: outputs [B, S, D], keys and values [B, S, 2L, D]."""
        batch, length, width = x.shape
        mask = causal_mask(length)
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

    def follow(self, x: np.ndarray, tree: PrefixTrie, memory: np.ndarray) -> np.ndarray:
        """Decode all positions of many texts after one source.

        Args:
            x: input of each node of the tree [N, D].
            tree: of the texts.
            memory: of the source [S, 2L, D], without padding.

        Returns:
            Outputs of the nodes [N, D].
        """
        mask = causal_mask(tree.paths.shape[1])
        for layer in self._layers:
            x = layer.follow(x, tree, memory, mask)  # [N, D]
        return self._norm(x)


class _CausalLayer(NumpyTransformerLayer):
    """A pre-norm layer; its keys and values are parts `part` and `part + 1` of the caches."""

    def __init__(self, config: CausalConfig, weights: Weights, name: str, part: int) -> None:
        super().__init__(config, weights, name)
        self._part = part

    def read(self, x: np.ndarray, mask: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Map a source [B, S, D] to [B, S, D] and fill its memory; `mask` is additive [S, S]."""
        x, fused = self._attend_to_itself(x, mask)
        memory[:, :, self._part : self._part + 2] = fused[:, :, 1:]
        return self._feed_forward(x)

    def step(self, x: np.ndarray, cache: AttentionCache) -> np.ndarray:
        """Map [N, D] at the last of `cache.length` positions to [N, D], and fill the cache there."""
        part, length, rows = self._part, cache.length, cache.rows
        fused = self._query_key_value(self._self_norm(x)).reshape(len(x), 3, self._width)  # [N, 3, D]
        cache.past[:, length - 1, part : part + 2] = fused[:, 1:]
        query = self._scaled(fused[:, 0])  # [N, D]
        key, value = (self._split(cache.past[:, :length, part + k]) for k in range(2))  # [N, heads, T, d]
        own = np.matmul(self._split(query[:, None]), key.swapaxes(2, 3))[:, :, 0]  # [N, heads, T]
        source_key, source_value = (self._split(cache.memory[:, :, part + k]) for k in range(2))
        grid = self._split(rows.scatter(query))  # [B, heads, R, d]
        scores = np.matmul(grid, source_key.swapaxes(2, 3))  # [B, heads, R, S]
        scores += cache.mask
        weights = softmax(np.concatenate([self._gather(scores, cache), own], axis=2))  # [N, heads, S + T]
        size = scores.shape[3]
        context = np.matmul(self._scatter(weights[:, :, :size], cache), source_value)  # [B, heads, R, d]
        read = self._gather(context, cache)  # [N, heads, d]
        read += np.matmul(weights[:, :, None, size:], value)[:, :, 0]
        return self._feed_forward(x + self._output(read.reshape(x.shape)))

    def follow(self, x: np.ndarray, tree: PrefixTrie, memory: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Map the nodes of a tree [N, D] to [N, D]; `mask` is additive [T, T]."""
        paths, owners, places = tree.paths, tree.owners, tree.places
        fused = self._query_key_value(self._self_norm(x)).reshape(len(x), 3, self._width)  # [N, 3, D]
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
        return self._feed_forward(x + self._output((read + own[owners, :, places]).reshape(x.shape)))

    def _scaled(self, query: np.ndarray) -> np.ndarray:
        return query * np.float32((self._width // self._heads) ** -0.5)

    def _split(self, x: np.ndarray) -> np.ndarray:
        """Split [N, T, D] into [N, heads, T, d]."""
        return x.reshape(*x.shape[:2], self._heads, -1).swapaxes(1, 2)

    def _gather(self, grid: np.ndarray, cache: AttentionCache) -> np.ndarray:
        """Return the rows [N, heads, K] of a grid [B, heads, R, K]."""
        batch, heads, slots, _ = grid.shape
        rows = cache.rows.gather(grid.swapaxes(1, 2).reshape(batch, slots, -1))  # [N, heads * K]
        return rows.reshape(len(rows), heads, -1)

    def _scatter(self, rows: np.ndarray, cache: AttentionCache) -> np.ndarray:
        """Return rows [N, heads, K] as a grid [B, heads, R, K]."""
        return self._split(cache.rows.scatter(rows.reshape(len(rows), -1)))


class NumpyCausalEncoder:
    """`CausalEncoder` in NumPy, with the same results."""

    def __init__(self, config: CausalTransformerConfig, weights: Weights) -> None:
        self.output_size = config.width
        self.positions = sinusoids(max_length=config.max_positions, width=config.width)  # [positions, D]
        self.stack = NumpyCausalTransformer(config, weights, "encoder.stack")

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read embedded sources; return outputs [B, S, D], and for the decoder keys and values [B, S, 2L, D]."""
        return self.stack.read(embedded + self.positions[: embedded.shape[1]])


class NumpyCausalDecoder(NumpyDecoder):
    """`CausalDecoder` in NumPy, with the same results."""

    def __init__(
        self, config: CausalTransformerConfig, weights: Weights, encoder: NumpyCausalEncoder
    ) -> None:
        self._encoder = encoder
        self._query = NumpyLinear.named(
            weights, "decoder.copy.query", config.width, config.copy_size, bias=False
        )
        self._key = NumpyLinear.named(weights, "decoder.copy.key", config.width, config.copy_size, bias=False)
        self._scale = np.float32(config.copy_size**-0.5)

    def prepare(self, outputs: np.ndarray, final: np.ndarray, lengths: np.ndarray) -> AttentionCache:
        """Return the source's keys and values, and as `sources` the copying head's keys and the lengths."""
        return AttentionCache.of(final, lengths, self._key(outputs), lengths)

    def step(
        self, embedded: np.ndarray, state: AttentionCache
    ) -> tuple[np.ndarray, np.ndarray, AttentionCache]:
        """Decode one more position of every row; the attention is the copying head's."""
        rows, (keys, lengths) = state.rows, state.sources
        x = embedded + self._encoder.positions[lengths[rows.inputs] + state.length]  # [N, D]
        hidden, state = self._encoder.stack.step(x, state)  # [N, D]
        return hidden, self._copy(rows.scatter(hidden), keys, state.mask[:, 0]), state

    def follow(self, x: np.ndarray, tree: PrefixTrie, state: AttentionCache) -> tuple[np.ndarray, np.ndarray]:
        """Decode all positions of many texts after one source.

        Args:
            x: embedded nodes of the texts' tree [N, D].
            tree: of the texts.
            state: before the first position, of a single source.

        Returns:
            Hidden [N, D] and attention over the source [N, S].
        """
        keys, (size,) = state.sources
        positions, most = self._encoder.positions, tree.paths.shape[1]
        if size + most > len(positions):
            raise UserError(
                f"a reply of {most - 1} tokens cannot be scored: after this context the model has "
                f"{len(positions) - size - 1} positions left; give a shorter one"
            )
        hidden = self._encoder.stack.follow(x + positions[size + tree.places], tree, state.memory[0, :size])
        return hidden, self._copy(hidden[None], keys[:, :size])[0]

    def _copy(self, x: np.ndarray, keys: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """Return the copying head's weights [B, R, S] from `x` [B, R, D]; `mask` is additive [B, 1, S]."""
        scores = np.matmul(self._query(x) * self._scale, keys.swapaxes(1, 2))  # [B, R, S]
        if mask is not None:
            scores += mask
        return softmax(scores)


class NumpyCausalLm:
    """Implements `StepModel` and `TextReader` in NumPy, with the results of `CausalLm`.

    Args:
        vocab_size: V.
        arrays: weights of the network by structured name.
    """

    def __init__(self, config: CausalLmConfig, vocab_size: int, arrays: Mapping[str, np.ndarray]) -> None:
        weights, width = Weights(arrays), config.width
        table = weights.take("embedding.table.weight", vocab_size, width)
        self._table = without_padding(table) * np.float32(width**0.5)
        self._positions = weights.take("positions.weight", config.max_positions, width)
        self._stack = NumpyCausalTransformer(config, weights, "stack")
        self._output = NumpyLinear(table.T, weights.take("output.bias", vocab_size))
        weights.check_all_taken()

    def encode(self, source: np.ndarray, lengths: np.ndarray) -> AttentionCache:
        """Return the state before the begin token, after the ids [B, S] that precede it, of lengths [B]."""
        places = np.arange(source.shape[1]) - lengths[:, None]  # [B, S], negative
        x = self._table[source] + self._positions[places % len(self._positions)]  # [B, S, D]
        return AttentionCache.of(self._stack.read(x)[1], lengths)

    def step(self, token: np.ndarray, state: AttentionCache) -> tuple[np.ndarray, AttentionCache]:
        """Return logits [N, V] after one more token [N], and the new state."""
        x, state = self._stack.step(self._table[token] + self._positions[state.length], state)  # [N, D]
        return self._output(x), state

    def reorder(self, state: AttentionCache, index: np.ndarray) -> AttentionCache:
        """Return the state of the rows `index` [M]."""
        return state.reorder(index)[0]

    def text_states(
        self, source: np.ndarray, lengths: np.ndarray, texts: Sequence[Sequence[int]], inputs: np.ndarray
    ) -> list[np.ndarray]:
        """Read texts, those of one input together; arguments as for `TextReader`."""
        states = [np.empty((0, 0), dtype=np.float32)] * len(texts)
        for row in np.unique(inputs).tolist():
            together, before = np.flatnonzero(inputs == row).tolist(), source[row, : lengths[row]].tolist()
            longest = max(len(texts[number]) for number in together)
            tokens = np.full((len(together), len(before) + 1 + longest), Vocabulary.pad_id)  # [m, S + 1 + T]
            for line, number in zip(tokens, together, strict=True):
                given = [*before, Vocabulary.bos_id, *texts[number]]
                line[: len(given)] = given
            places = np.arange(tokens.shape[1]) - len(before)
            hidden, _ = self._stack.read(self._table[tokens] + self._positions[places])  # [m, S + 1 + T, D]
            for number, outputs in zip(together, hidden[:, len(before) :], strict=True):
                states[number] = outputs[: len(texts[number]) + 1]
        return states

    def state_log_probs(self, states: Sequence[np.ndarray], texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Return log p(text, end | input) [M] from the states of the texts."""
        return log_probs_of_texts(self._output, states, texts)
