"""The operators of the families' steps on float32 arrays, and a model's embeddings; nothing here imports Paddle.

A search steps with a handful of rows. A step of Paddle is then mostly the launching of operators, and a start mostly
the import of Paddle; NumPy avoids both. The networks are the definition, and tests compare the arrays with them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping

import numpy as np

from paddle_dialog.config.models import FamilyConfig
from paddle_dialog.mkl import has_avx512
from paddle_dialog.text.vocabulary import Vocabulary

COLUMNS = 64  # of a block of a weight matrix
CACHE_LINE = 16  # numbers
SMALL = 1_000_000  # multiplications up to which OpenBLAS does not rearrange matrices, with AVX-512
LARGEST = SMALL if has_avx512() else sys.maxsize  # multiplications of one product
SCALE = ".scale"  # suffix of the names of a matrix's scales
_STEPS = 127  # of a number's magnitude in 8 bits
EPSILON = np.float32(1e-5)  # of Paddle's layer norm


class UnsupportedModelError(Exception):
    """The array form does not support a network; the message says why."""


def quantize(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights with their matrices in 8 bits; the largest number of each row is 127 steps.

    Returns:
        For a matrix [R, C] int8 [R, C] and, under its name and `.scale`, float32 [R, 1]; matrices of one column and
        all that are no matrices as they are.
    """
    tensors: dict[str, np.ndarray] = {}
    for name, values in weights.items():
        if values.ndim != 2 or values.shape[1] == 1:
            tensors[name] = values
            continue
        largest = np.abs(values).max(axis=1, keepdims=True).astype(np.float32)
        scale = np.maximum(largest, 1e-9) / _STEPS  # [R, 1]
        tensors[name], tensors[name + SCALE] = np.rint(values / scale).astype(np.int8), scale
    return tensors


class EightBitWeights(Mapping[str, np.ndarray]):
    """The weights that `quantize` was given, as near as 8 bits come; others as they are.

    A matrix becomes float32 each time it is asked for, so that the weights take a quarter of the memory.

    Attributes:
        scales: name → the number that each row of the matrix is multiplied by [R, 1].

    Raises:
        KeyError: the scales of a matrix are missing.
    """

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self.scales = {
            name: tensors[name + SCALE] for name, values in tensors.items() if values.dtype == np.int8
        }
        scales = {name + SCALE for name in self.scales}
        self._values = {name: values for name, values in tensors.items() if name not in scales}

    def __getitem__(self, name: str) -> np.ndarray:
        values = self._values[name]
        return values * self.scales[name] if name in self.scales else values

    def values_of(self, name: str) -> np.ndarray:
        """Return a matrix as it is stored."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Weights:
    """The weights of a network, taken one by one.

    Args:
        arrays: by structured name, float of any precision.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._taken: set[str] = set()

    def take(self, name: str, *shape: int) -> np.ndarray:
        """Return a weight as float32, which must not be written to.

        Raises:
            UnsupportedModelError: there is none of this name and shape.
        """
        array = self._arrays.get(name)
        if array is None or array.shape != shape:
            found = "missing" if array is None else f"of shape {list(array.shape)}"
            raise UnsupportedModelError(f"{name} is {found}, where {list(shape)} is expected")
        self._taken.add(name)
        return array.astype(np.float32, copy=False)

    def take_table(self, name: str, size: int, width: int) -> Table:
        """Return a table of embeddings [V, E], in 8 bits where the weights are.

        Raises:
            UnsupportedModelError: there is none of this name and shape.
        """
        if not isinstance(self._arrays, EightBitWeights) or name not in self._arrays.scales:
            return Table(self.take(name, size, width))
        values = self._arrays.values_of(name)
        if values.shape != (size, width):
            self.take(name, size, width)  # says what is wrong
        self._taken.add(name)
        return Table(values, self._arrays.scales[name])

    def check_all_taken(self) -> None:
        """Check that every weight was taken.

        Raises:
            UnsupportedModelError: a weight was not taken.
        """
        left = self._arrays.keys() - self._taken
        if left:
            raise UnsupportedModelError(f"{min(left)} is unknown")


class Table:
    """The vector of each token; that of padding is zero, whatever the weights have there.

    Args:
        values: [V, E], float, or int8 that is multiplied as it is looked up.
        scales: of each row of int8 [V, 1].
    """

    def __init__(self, values: np.ndarray, scales: np.ndarray | None = None) -> None:
        self._values, self._scales = values, scales
        if scales is None:
            self._values = without_padding(values)
        else:
            self._scales = scales.copy()
            self._scales[Vocabulary.pad_id] = 0

    def __getitem__(self, ids: np.ndarray | int | slice) -> np.ndarray:
        """Return vectors [..., E]; of an array of ids they may be written to."""
        vectors: np.ndarray = self._values[ids]
        return vectors if self._scales is None else vectors * self._scales[ids]


class NumpyLinear:
    """x W + b.

    For a handful of rows OpenBLAS spends more time on rearranging a large W than on the product, but not if the
    product is small. So W is kept in contiguous blocks of columns and x is taken a few rows at a time, which is 1.1
    to 3 times as fast for up to 160 rows and no slower for more; starting every row of a block at a cache line saves
    another sixth. Without AVX-512 OpenBLAS rearranges any W, and all rows at once are up to twice as fast.

    Args:
        weight: W [K, N], which is copied.
        bias: b [N], or None.

    Attributes:
        size: N.
    """

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        self._bias = bias
        inputs, self.size = weight.shape
        self._most = max(LARGEST // (inputs * COLUMNS), 1)  # rows of a product
        count = -(-self.size // COLUMNS)
        self._blocks = _at_cache_line((count, inputs, COLUMNS))  # [N / COLUMNS, K, COLUMNS]
        for block, start in zip(self._blocks, range(0, self.size, COLUMNS), strict=True):
            columns = weight[:, start : start + COLUMNS]
            block[:, : columns.shape[1]] = columns
            block[:, columns.shape[1] :] = 0

    @classmethod
    def named(cls, weights: Weights, name: str, inputs: int, outputs: int, bias: bool = True) -> NumpyLinear:
        """Make the layer of K `inputs` and N `outputs` from the weights `name.weight` and `name.bias`."""
        return cls(
            weights.take(f"{name}.weight", inputs, outputs),
            weights.take(f"{name}.bias", outputs) if bias else None,
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map [..., K] to [..., N]; the result may be written to."""
        y = self.columns(x.reshape(-1, x.shape[-1]), 0, self.size)  # [R, N]
        return y.reshape(*x.shape[:-1], self.size)

    def columns(self, x: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Map `x` [R, K] and return columns `start` to `stop`, at most the last; the result may be written to.

        `start` must be a multiple of `COLUMNS`.
        """
        blocks = self._blocks[start // COLUMNS : -(-stop // COLUMNS)]
        rows = len(x)
        if rows == 1:
            x = np.repeat(x, 2, axis=0)  # a product of one row alone is slower
        out = np.empty((len(x), len(blocks), COLUMNS), dtype=np.float32)
        step = -(-rows // -(-rows // self._most)) if rows > 1 else 2
        for first in range(0, rows, step):
            part = slice(first, first + step)
            np.matmul(x[part], blocks, out=out[part].transpose(1, 0, 2))
        y = out.reshape(len(x), -1)[:rows, : min(stop, self.size) - start]  # [R, stop - start]
        if self._bias is not None:
            y += self._bias[start:stop]
        return y


def _at_cache_line(shape: tuple[int, ...]) -> np.ndarray:
    """Return an empty float32 array that begins with a cache line."""
    count = math.prod(shape)
    memory = np.empty(count + CACHE_LINE, dtype=np.float32)
    start = -(memory.ctypes.data // memory.itemsize) % CACHE_LINE
    return memory[start : start + count].reshape(shape)


class NumpyLayerNorm:
    """Layer norm (Ba et al. 2016) over the last axis.

    Args:
        weights: hold `name.weight` and `name.bias`.
        name: of the layer.
        width: of the last axis.
    """

    def __init__(self, weights: Weights, name: str, width: int) -> None:
        # (x - m) / sqrt(|x - m|² / D + e) = sqrt(D) (x - m) / sqrt(|x - m|² + D e)
        self._scale = weights.take(f"{name}.weight", width) * np.float32(width**0.5)
        self._epsilon = EPSILON * np.float32(width)
        self._shift = weights.take(f"{name}.bias", width)
        self._average = np.full((width, 1), 1 / width, dtype=np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Normalise [..., D]."""
        centred = x - x @ self._average
        norms = np.matmul(centred[..., None, :], centred[..., None])[..., 0]  # [..., 1]
        norms += self._epsilon
        centred /= np.sqrt(norms, out=norms)
        centred *= self._scale
        centred += self._shift
        return centred


def softmax(scores: np.ndarray) -> np.ndarray:
    """Compute the softmax over the last axis, in place."""
    # Reducing a short last axis is slow.
    columns = np.ascontiguousarray(scores.reshape(-1, scores.shape[-1]).T)
    columns -= np.maximum.reduce(columns, axis=0)
    np.exp(columns, out=columns)
    columns /= np.add.reduce(columns, axis=0)
    scores[...] = columns.T.reshape(scores.shape)
    return scores


def padding_mask(lengths: np.ndarray, size: int) -> np.ndarray:
    """Return the additive mask of attention scores: 0 on real positions, very low on padding, float32 [B, size]."""
    real = np.arange(size) < lengths[:, None]
    return np.where(real, np.float32(0), np.finfo(np.float32).min / 2).astype(np.float32)


def attention_pool(values: np.ndarray, query: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the mean of the real positions, weighted by a softmax of their products with a query.

    Args:
        values: [B, S, D].
        query: [D, 1].
        lengths: [B].

    Returns:
        [B, D].
    """
    scores = (values @ query)[..., 0]  # [B, S]
    weights = softmax(scores + padding_mask(lengths, values.shape[1]))  # [B, S]
    pooled: np.ndarray = np.matmul(weights[:, None], values)[:, 0]
    return pooled


class Embeddings:
    """The tables of source and target, and the output layer, which may be the target's table.

    Args:
        vocab_size: V.
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
        source = target = f"{source_name}.table.weight"
        self.source = self.target = weights.take_table(source, *shape)
        if not config.share_embeddings:
            target = "own_target_embedding.table.weight"
            self.target = weights.take_table(target, *shape)
        self.factor = np.float32(config.embedding_size**0.5 if config.scale_embeddings else 1.0)
        self.output = (
            NumpyLinear(
                weights.take(target, *shape).T,
                weights.take(f"{output_name}.bias", vocab_size) if config.output_bias else None,
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
