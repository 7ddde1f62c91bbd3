"""The operators of the families' steps on float32 arrays, and a model's embeddings; nothing here imports Paddle.

A search steps with a handful of rows. A step of Paddle is then mostly the launching of operators, and a start mostly
the import of Paddle; NumPy avoids both. The networks are the definition, and tests compare the arrays with them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from paddle_dialog.config.models import FamilyConfig
from paddle_dialog.data.eight_bits import EightBitWeights
from paddle_dialog.device import has_avx512
from paddle_dialog.errors import UnsupportedModelError
from paddle_dialog.text.vocabulary import Vocabulary

COLUMNS = 64  # of a block of a weight matrix
CACHE_LINE = 16  # numbers
SMALL = 1_000_000  # multiplications up to which OpenBLAS does not rearrange matrices, with AVX-512
LARGEST = SMALL if has_avx512() else sys.maxsize  # multiplications of one product
POSITIONS = 256  # read at once, so that what is computed of them stays in the cache
WORDS_AT_ONCE = 1024  # of the vocabulary, so that the logits of many rows stay in the cache
EPSILON = np.float32(1e-5)  # of Paddle's layer norm


class Weights:
    """The weights of a network, taken one by one; one that is missing or misshapen raises `UnsupportedModelError`.

    Args:
        arrays: by structured name, float of any precision.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._taken: set[str] = set()

    def take(self, name: str, *shape: int) -> np.ndarray:
        """Return a weight as float32, which must not be written to."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape:
            found = "missing" if array is None else f"of shape {list(array.shape)}"
            raise UnsupportedModelError(f"{name} is {found}, where {list(shape)} is expected")
        self._taken.add(name)
        return array.astype(np.float32, copy=False)

    def take_table(self, name: str, size: int, width: int) -> Table:
        """Return a table of embeddings [V, E], in 8 bits where the weights are."""
        if not isinstance(self._arrays, EightBitWeights) or name not in self._arrays.scales:
            return Table(self.take(name, size, width))
        values = self._arrays.values_of(name)
        if values.shape != (size, width):
            self.take(name, size, width)  # says what is wrong
        self._taken.add(name)
        return Table(values, self._arrays.scales[name])

    def check_all_taken(self) -> None:
        """Check that every weight was taken."""
        left = self._arrays.keys() - self._taken
        if left:
            raise UnsupportedModelError(f"{min(left)} is unknown")


def require_supported(key: str, value: object, *known: object) -> None:
    """Raise `UnsupportedModelError` where the NumPy steps do not know a setting that chooses what is computed."""
    if value not in known:
        raise UnsupportedModelError(f"the steps in NumPy do not know {key}: {value}")


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

    def embed_source(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors of a source's ids [...]: [..., E]."""
        return self.source[ids] * self.factor

    def embed_target(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors of a target's ids [...]: [..., E]."""
        return self.target[ids] * self.factor


def without_padding(table: np.ndarray) -> np.ndarray:
    """Return an embedding table [V, D] with a zero row for padding.

    A table that is also the output layer's weight may have any values there.
    """
    if not table[Vocabulary.pad_id].any():
        return table
    table = table.copy()
    table[Vocabulary.pad_id] = 0
    return table


def label_log_softmax(
    output: NumpyLinear, hidden: np.ndarray, rows: np.ndarray, labels: np.ndarray, temperature: np.float32
) -> np.ndarray:
    """Compute log softmax(logits / temperature) at given ids, without ever holding the logits of all words.

    Args:
        output: H to V.
        hidden: decoder outputs [N, H].
        rows: the output that predicts each token [P].
        labels: its id [P]; at ids beyond the vocabulary the result has no meaning.
        temperature: > 0.

    Returns:
        float32 [P].
    """
    chosen = np.zeros(len(labels), dtype=np.float32)  # [P] logits
    highest, totals = [], []  # of each part of the vocabulary, [N] each
    for start in range(0, output.size, WORDS_AT_ONCE):
        logits = output.columns(hidden, start, start + WORDS_AT_ONCE)  # [N, C]
        if temperature != 1.0:
            logits /= temperature
        inside = np.flatnonzero((labels >= start) & (labels < start + logits.shape[1]))
        chosen[inside] = logits[rows[inside], labels[inside] - start]
        highest.append(logits.max(axis=1))
        logits -= highest[-1][:, None]
        totals.append(np.exp(logits, out=logits) @ np.ones(logits.shape[1], dtype=np.float32))
    top = np.maximum.reduce(highest)  # [N]
    total = sum(part * np.exp(high - top) for part, high in zip(totals, highest, strict=True))  # [N]
    found: np.ndarray = chosen - (top + np.log(total))[rows]
    return found


def log_probs_of_texts(
    output: NumpyLinear, states: Sequence[np.ndarray], texts: Sequence[Sequence[int]]
) -> np.ndarray:
    """Return log p(text, end) of M texts, float64 [M].

    Args:
        output: the layer that scores the vocabulary.
        states: its inputs for the tokens of each text and its end, [T + 1, D] each.
        texts: ids without start and end token.
    """
    if not texts:
        return np.zeros(0)
    hidden = np.concatenate(states)  # [P, D]
    labels = np.array([token for text in texts for token in (*text, Vocabulary.eos_id)])  # [P]
    scores = np.empty(len(labels))  # [P]
    for start in range(0, len(labels), POSITIONS):
        part = slice(start, start + POSITIONS)
        own = np.arange(len(labels[part]))
        scores[part] = label_log_softmax(output, hidden[part], own, labels[part], np.float32(1))
    return np.add.reduceat(scores, np.cumsum([0, *map(len, states[:-1])]))
