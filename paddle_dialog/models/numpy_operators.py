"""The operators of the families' steps on float32 arrays, and a model's embeddings; nothing here imports Paddle.

A search steps with a handful of rows. A step of Paddle is then mostly the launching of operators, and a start mostly
the import of Paddle; NumPy avoids both. The networks are the definition, and tests compare the arrays with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from paddle_dialog.config.models import FamilyConfig
from paddle_dialog.text.vocabulary import Vocabulary

COLUMNS = 64  # of a block of a weight matrix
CACHE_LINE = 16  # numbers
SMALL = 15_000  # numbers in x up to which blocks are faster
EPSILON = np.float32(1e-5)  # of Paddle's layer norm


class UnsupportedModelError(Exception):
    """The array form does not support a network; the message says why."""


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

    def check_all_taken(self) -> None:
        """Check that every weight was taken.

        Raises:
            UnsupportedModelError: a weight was not taken.
        """
        left = self._arrays.keys() - self._taken
        if left:
            raise UnsupportedModelError(f"{min(left)} is unknown")


class NumpyLinear:
    """x W + b.

    For a handful of rows OpenBLAS spends more time on rearranging a large W than on the product, but not if the
    product is small. So W is kept in contiguous blocks of columns, which halves the time; starting every row of a
    block at a cache line saves another sixth.

    Args:
        weight: W [K, N].
        bias: b [N], or None.

    Attributes:
        size: N.
        weight: W.
    """

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        self.weight = np.ascontiguousarray(weight)
        self._bias = bias
        self.size = weight.shape[1]
        count = -(-self.size // COLUMNS)
        padded = np.zeros((weight.shape[0], count * COLUMNS), dtype=np.float32)
        padded[:, : self.size] = weight
        self._blocks = _at_cache_line((count, weight.shape[0], COLUMNS))  # [N / COLUMNS, K, COLUMNS]
        self._blocks[:] = padded.reshape(-1, count, COLUMNS).transpose(1, 0, 2)

    @classmethod
    def named(cls, weights: Weights, name: str, inputs: int, outputs: int, bias: bool = True) -> NumpyLinear:
        """Make the layer of K `inputs` and N `outputs` from the weights `name.weight` and `name.bias`."""
        return cls(
            weights.take(f"{name}.weight", inputs, outputs),
            weights.take(f"{name}.bias", outputs) if bias else None,
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map [..., K] to [..., N]; the result may be written to."""
        rows = x.reshape(-1, x.shape[-1])  # [R, K]
        if len(rows) > 1 and rows.size <= SMALL:
            out = np.empty((len(rows), len(self._blocks), COLUMNS), dtype=np.float32)
            np.matmul(rows, self._blocks, out=out.transpose(1, 0, 2))
            y = out.reshape(len(rows), -1)[:, : self.size]  # [R, N]
        else:
            y = rows @ self.weight  # [R, N]
        if self._bias is not None:
            y += self._bias
        return y.reshape(*x.shape[:-1], self.size)

    def columns(self, x: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Map `x` [R, K] and return columns `start` to `stop`, at most the last; the result may be written to."""
        y = x @ self.weight[:, start:stop]  # [R, stop - start]
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
