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
    NumpyEncoder,
    NumpyTransformerLayer,
)
from paddle_dialog.models.numpy_operators import (
    NumpyLayerNorm,
    NumpyLinear,
    Weights,
    causal_mask,
    log_probs_of_texts,
    softmax,
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

    def read(self, x: np.ndarray, source: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Read texts, alone or after one source.

        Args:
            x: embedded [B, T, D], padded at the end.
            source: its keys and values [S, 2L, D], without padding.

        Returns:
            Outputs [B, T, D], and keys and values of the texts [B, T, 2L, D].
        """
        length, memory = x.shape[1], []
        mask = causal_mask(length)  # [T, T]
        if source is not None:
            mask = np.concatenate([np.zeros((length, len(source)), np.float32), mask], axis=1)  # [T, S + T]
        for layer in self._layers:
            x, own = layer.read(x, mask, source)  # [B, T, D], [B, T, 2, D]
            memory.append(own)
        return self._norm(x), np.concatenate(memory, axis=2)

    def step(self, x: np.ndarray, cache: AttentionCache) -> tuple[np.ndarray, AttentionCache]:
        """Decode one more position of every row, whose input is `x` [N, D].

        Returns:
            Output [N, D], and the new cache, which takes over the arrays of the old.
        """
        cache = cache.with_one_more()
        for layer in self._layers:
            x = layer.step(x, cache)  # [N, D]
        return self._norm(x), cache


class _CausalLayer(NumpyTransformerLayer):
    """A pre-norm layer; its keys and values are parts `part` and `part + 1` of the caches."""

    def __init__(self, config: CausalConfig, weights: Weights, name: str, part: int) -> None:
        super().__init__(config, weights, name)
        self._part = part

    def read(
        self, x: np.ndarray, mask: np.ndarray, source: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Map texts [B, T, D] to [B, T, D]; return their keys and values [B, T, 2, D] too, arguments as above."""
        part = slice(self._part, self._part + 2)
        x, own = self._attend_to_itself(x, mask, None if source is None else source[:, part])
        return self._feed_forward(x), own

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


class NumpyCausalEncoder(NumpyEncoder):
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

    def read_targets(self, x: np.ndarray, state: AttentionCache) -> tuple[np.ndarray, np.ndarray]:
        """Decode all positions of many texts after one source.

        Args:
            x: embedded texts [M, T, D], padded at the end.
            state: before the first position, of a single source.

        Returns:
            Hidden [M, T, D] and attention over the source [M, T, S].
        """
        keys, (size,) = state.sources
        positions, length = self._encoder.positions, x.shape[1]
        if size + length > len(positions):
            raise UserError(
                f"a reply of {length - 1} tokens cannot be scored: after this context the model has "
                f"{len(positions) - size - 1} positions left; give a shorter one"
            )
        hidden, _ = self._encoder.stack.read(x + positions[size : size + length], state.memory[0, :size])
        return hidden, self._copy(hidden, keys[:, :size])

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
        table = "embedding.table.weight", vocab_size, width
        self._table = weights.take_table(*table, scale=True)
        self._positions = weights.take("positions.weight", config.max_positions, width)
        self._stack = NumpyCausalTransformer(config, weights, "stack")
        self._output = NumpyLinear(weights.take(*table).T, weights.take("output.bias", vocab_size))
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
