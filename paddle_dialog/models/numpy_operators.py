"""Weights by name, layers and operators on float32 arrays; nothing here imports Paddle.

A search steps with a handful of rows. A step of Paddle is then mostly the launching of operators, and a start mostly
the import of Paddle; NumPy avoids both. The networks are the definition, and tests compare the arrays with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paddle_dialog.errors import UnsupportedModelError
from paddle_dialog.text.vocabulary import Vocabulary

COLUMNS = 64  # of a block of a weight matrix
ROWS = 32  # whose logits are computed at once, so that they stay in the cache
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

    def take_table(self, name: str, size: int, width: int, scale: bool) -> np.ndarray:
        """Return a table of embeddings [V, E], multiplied by sqrt(E) if `scale`, in which padding has zeros.

        A table that an output layer shares has trained numbers there; this copy is cleared, the shared weight is not.
        """
        table = self.take(name, size, width) * np.float32(width**0.5 if scale else 1.0)
        table[Vocabulary.pad_id] = 0
        return table

    def check_all_taken(self) -> None:
        """Check that every weight was taken."""
        left = self._arrays.keys() - self._taken
        if left:
            raise UnsupportedModelError(f"{min(left)} is unknown")


def require_supported(key: str, value: object, *known: object) -> None:
    """Raise `UnsupportedModelError` where the NumPy steps do not know a setting that chooses what is computed."""
    if value not in known:
        raise UnsupportedModelError(f"the steps in NumPy do not know {key}: {value}")


class NumpyLinear:
    """x W + b.

    OpenBLAS rearranges a large W for each product, which takes longer than the product itself if x has a handful of
    rows, but not a small W. So W is kept in contiguous blocks of columns: 1.1 to 2.9 times as fast for 5 to 40 rows.

    Args:
        weight: W [K, N], which is copied.
        bias: b [N], or None.

    Attributes:
        size: N.
    """

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        self._bias = bias
        inputs, self.size = weight.shape
        count = -(-self.size // COLUMNS)
        self._blocks = np.zeros((count, inputs, COLUMNS), dtype=np.float32)  # [N / COLUMNS, K, COLUMNS]
        for number, block in enumerate(self._blocks):
            columns = weight[:, number * COLUMNS : (number + 1) * COLUMNS]
            block[:, : columns.shape[1]] = columns

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
        y = np.empty((len(rows), len(self._blocks), COLUMNS), dtype=np.float32)
        np.matmul(rows, self._blocks, out=y.transpose(1, 0, 2))
        y = y.reshape(len(rows), -1)[:, : self.size]  # [R, N]
        if self._bias is not None:
            y += self._bias
        return y.reshape(*x.shape[:-1], self.size)


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


def causal_mask(length: int) -> np.ndarray:
    """Return the additive mask of attention scores: 0 at and before each position, very low after it, [T, T]."""
    return padding_mask(np.arange(1, length + 1), length)


def attend(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None, heads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax(q kᵀ / sqrt(d) + mask) v for all heads (Vaswani et al. 2017, equation 1).

    Args:
        query: [N, T, D].
        key: [N, S, D].
        value: [N, S, D].
        mask: additive [N, 1, 1, S] or [T, S], or None.
        heads: D = heads * d.

    Returns:
        Context [N, T, D] and the weights [N, heads, T, S].
    """
    rows, length, width = query.shape
    size = width // heads
    query, key, value = (
        part.reshape(rows, -1, heads, size).swapaxes(1, 2) for part in (query, key, value)
    )  # [N, heads, ·, d]
    scores = np.matmul(query * np.float32(size**-0.5), key.swapaxes(2, 3))  # [N, heads, T, S]
    if mask is not None:
        scores += mask
    weights = softmax(scores)
    context = np.matmul(weights, value)  # [N, heads, T, d]
    return context.swapaxes(1, 2).reshape(rows, length, width), weights


def label_log_softmax(
    output: NumpyLinear, hidden: np.ndarray, labels: np.ndarray, temperature: float = 1.0
) -> np.ndarray:
    """Compute log softmax(logits / temperature) at given ids.

    Args:
        output: H to V.
        hidden: decoder outputs [P, H].
        labels: the id that each of them predicts [P]; for ids beyond the vocabulary the result has no meaning.
        temperature: > 0.

    Returns:
        float32 [P].
    """
    found = np.empty(len(labels), dtype=np.float32)
    for start in range(0, len(labels), ROWS):
        part = slice(start, start + ROWS)
        logits = output(hidden[part]) / temperature  # [R, V]
        logits -= logits.max(axis=1, keepdims=True)
        ids = np.minimum(labels[part], output.size - 1)  # [R]
        found[part] = logits[np.arange(len(ids)), ids] - np.log(np.exp(logits).sum(axis=1))
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
    labels = np.array([token for text in texts for token in (*text, Vocabulary.eos_id)])  # [P]
    scores = label_log_softmax(output, np.concatenate(states), labels).astype(np.float64)  # [P]
    return np.add.reduceat(scores, np.cumsum([0, *map(len, states[:-1])]))
