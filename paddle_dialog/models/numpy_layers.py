"""What the families in NumPy share: their interfaces, the state of decoding, and the Transformer's layer."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from paddle_dialog.config.models import CausalConfig, TransformerConfig
from paddle_dialog.models.numpy_operators import NumpyLayerNorm, NumpyLinear, Weights, attend, padding_mask

GROWTH = 4  # positions added to a full cache


class RowInputs(NamedTuple):
    """The inputs of N rows, as places in a grid of B inputs and R rows each."""

    inputs: np.ndarray  # [N] number of the input, 0 to B - 1
    slots: np.ndarray  # [N] number among the rows of the input, 0 to R - 1
    shape: tuple[int, int]  # B and R
    is_full: bool  # the rows fill the grid in order; the search keeps the rows of an input together

    @classmethod
    def of(cls, inputs: np.ndarray, count: int) -> RowInputs:
        """Return the places of rows in any order.

        Args:
            inputs: input of each row, [N].
            count: B.
        """
        order = np.argsort(inputs, kind="stable")  # [N]
        ordered = inputs[order]
        slots = np.empty_like(order)
        slots[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        size = int(slots.max(initial=0)) + 1
        is_full = len(inputs) == count * size and bool(np.all(inputs[1:] >= inputs[:-1]))
        return cls(inputs, slots, (count, size), is_full)

    def take(self, index: np.ndarray) -> tuple[RowInputs, np.ndarray | None]:
        """Return the places of the rows `index` [M], and the inputs still in use [B'], None if all are."""
        if np.array_equal(self.inputs[index], self.inputs):
            return self, None  # rows that stay with their input, as in most steps of a search
        left, inputs = np.unique(self.inputs[index], return_inverse=True)
        return RowInputs.of(inputs, len(left)), None if len(left) == self.shape[0] else left

    def scatter(self, rows: np.ndarray) -> np.ndarray:
        """Return rows [N, D] as a grid [B, R, D], zero where there is no row."""
        if self.is_full:
            return rows.reshape(*self.shape, -1)
        grid = np.zeros((*self.shape, rows.shape[1]), dtype=rows.dtype)
        grid[self.inputs, self.slots] = rows
        return grid

    def gather(self, grid: np.ndarray) -> np.ndarray:
        """Return the rows [N, D] of a grid [B, R, D]."""
        if self.is_full:
            return grid.reshape(-1, grid.shape[2])
        return grid[self.inputs, self.slots]


State = TypeVar("State", bound="DecoderState")


class DecoderState(Protocol):
    """The state of B inputs and of N targets so far, each of which belongs to an input."""

    @property
    def rows(self) -> RowInputs:
        """Which source each row belongs to."""

    def reorder(self: State, index: np.ndarray) -> tuple[State, np.ndarray | None]:
        """Return the state of the rows `index` [M], and the inputs still in use [B'], None if all are.

        What belongs to the inputs is copied only where some are gone.
        """


class NumpyEncoder(Protocol):
    """Reads embedded sources."""

    output_size: int  # width H of the outputs

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, Any]:
        """Read sources [B, S, E] of lengths [B]; return outputs [B, S, H] and the decoder's further input."""


class NumpyDecoder(Protocol):
    """Writes targets position by position."""

    def prepare(self, outputs: np.ndarray, final: Any, lengths: np.ndarray) -> Any:
        """Make the `DecoderState` before the first position from the encoder's output, with a row for each source."""

    def step(self, embedded: np.ndarray, state: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Decode one more position of every row.

        Args:
            embedded: its tokens [N, E].
            state: from `prepare` or the step before; must not be used afterwards, as a step may write into its
                arrays.

        Returns:
            Hidden [N, width], attention over the source [B, R, S], where R is the most rows of a source, and the new
            state.
        """


class AttentionCache(NamedTuple):
    """Keys and values for the decoder's layers; those of L layers are the 2L parts of one array."""

    rows: RowInputs  # N rows of B inputs
    memory: np.ndarray  # of the source [B, S, 2L, D]
    mask: np.ndarray  # additive [B, 1, 1, S]
    past: np.ndarray  # of the target so far [N, at least `length`, 2L, D]
    length: int  # positions in `past`
    sources: tuple[np.ndarray, ...] = ()  # what else a step needs of the sources, [B, …] each

    @classmethod
    def of(cls, memory: np.ndarray, lengths: np.ndarray, *sources: np.ndarray) -> AttentionCache:
        """Make the cache before the first position, with a row for each source of lengths [B]."""
        batch, positions, parts, width = memory.shape
        return cls(
            RowInputs.of(np.arange(batch), batch),
            memory,
            padding_mask(lengths, positions)[:, None, None],
            np.empty((batch, GROWTH, parts, width), dtype=np.float32),
            0,
            sources,
        )

    def with_one_more(self) -> AttentionCache:
        """Return the cache with room for the next position, which `length` includes already."""
        past = self.past
        if self.length == past.shape[1]:
            more = np.empty((len(past), GROWTH, *past.shape[2:]), dtype=np.float32)
            past = np.concatenate([past, more], axis=1)
        return self._replace(past=past, length=self.length + 1)

    def reorder(self, index: np.ndarray) -> tuple[AttentionCache, np.ndarray | None]:
        """Return the cache of the rows `index` [M], and the inputs still in use [B'], or None if all are."""
        rows, kept = self.rows.take(index)
        moved = self._replace(rows=rows, past=self.past.take(index, axis=0))
        if kept is None:
            return moved, None
        memory, mask, *sources = (array[kept] for array in (self.memory, self.mask, *self.sources))
        return moved._replace(memory=memory, mask=mask, sources=tuple(sources)), kept


class NumpyTransformerLayer:
    """The common parts of all layers: self-attention, feed-forward, and a norm of each.

    Args:
        name: of the layer.
    """

    def __init__(self, config: TransformerConfig | CausalConfig, weights: Weights, name: str) -> None:
        width, bias = config.width, config.bias
        self._weights, self._name, self._width, self._bias = weights, name, width, bias
        self._heads = config.num_heads
        self._query_key_value = self._linear("self_attention.query_key_value", width, 3 * width)
        self._output = self._linear("self_attention.output", width, width)
        self._expand = self._linear("feed_forward.expand", width, config.inner_width)
        self._contract = self._linear("feed_forward.contract", config.inner_width, width)
        self._self_norm = NumpyLayerNorm(weights, f"{name}.self_attention_norm", width)
        self._feed_forward_norm = NumpyLayerNorm(weights, f"{name}.feed_forward_norm", width)

    def _linear(self, name: str, inputs: int, outputs: int) -> NumpyLinear:
        return NumpyLinear.named(self._weights, f"{self._name}.{name}", inputs, outputs, self._bias)

    def _attend_to_itself(
        self, x: np.ndarray, mask: np.ndarray, source: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add self-attention to whole texts [B, T, D]; return them, and their keys and values [B, T, 2, D].

        Args:
            mask: additive [B, 1, 1, T] or [T, S + T].
            source: keys and values of a text before all of them [S, 2, D].
        """
        fused = self._query_key_value(self._self_norm(x)).reshape(*x.shape[:2], 3, -1)
        seen = own = fused[:, :, 1:]
        if source is not None:
            before = np.broadcast_to(source, (len(x), *source.shape))
            seen = np.concatenate([before, own], axis=1)  # [B, S + T, 2, D]
        context, _ = attend(fused[:, :, 0], seen[:, :, 0], seen[:, :, 1], mask, self._heads)
        return x + self._output(context), own

    def _feed_forward(self, x: np.ndarray) -> np.ndarray:
        """Add the feed-forward sublayer to `x` [..., D]."""
        inner = self._expand(self._feed_forward_norm(x))  # [..., inner]
        return x + self._contract(np.maximum(inner, np.float32(0), out=inner))
