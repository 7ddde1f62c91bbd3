"""What a model offers to the search, what the search gives back, and how arrays pass between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

Array = Any  # a Paddle tensor or a NumPy array


class StepModel(Protocol):
    """A model that predicts one token at a time from a cached state.

    A model computes with Paddle's tensors, or with NumPy arrays if it sets `uses_arrays = True`; everything it takes
    and returns is of that one kind.

    The state is any nesting of tuples, lists and dicts of tensors whose axis 0 is the row; only the model
    looks inside. A row belongs to one prefix of one input. A step may overwrite the state it is given, which is not
    used again. A model whose `step` returns log-probabilities instead of logits (a
    pointer-generator over an extended vocabulary) says so with `returns_log_probabilities = True`; its V may
    then exceed the vocabulary and differ from batch to batch, and it must accept ids of that range.

    A model may also offer `reorder_within(state, index)`: the same as `reorder`, called when every row stays
    with its input, so that what depends on the input alone (encoder outputs, their keys) need not move.
    """

    def encode(self, source: Array, lengths: Array, /) -> Any:
        """Read the inputs once.

        Args:
            source: ids, [B, S] int64, or [B, S, k] where the model reads k numbers (ids, roles, …) at each
                position; the search only hands them on.
            lengths: real length of each row, [B] int64.

        Returns:
            The state before the first token, B rows.
        """
        ...

    def step(self, token: Array, state: Any, /) -> tuple[Array, Any]:
        """Append one token to every row.

        Args:
            token: the previous token of each row (first the start token), [N] int64.
            state: N rows.

        Returns:
            Logits or log-probabilities of the next token, [N, V], and the new state.
        """
        ...

    def reorder(self, state: Any, index: Array, /) -> Any:
        """Take rows of the state: to repeat an input, to follow the beams, to drop what is finished.

        Args:
            state: N rows.
            index: row numbers, [N'] int64, in any order, repeats allowed.

        Returns:
            The state with N' rows.
        """
        ...


@runtime_checkable
class TextReader(Protocol):
    """A step model that reads given texts whole, and shows its states over them."""

    def text_states(
        self, source: Array, lengths: Array, texts: Sequence[Sequence[int]], inputs: np.ndarray, /
    ) -> list[np.ndarray]:
        """Read texts, teacher-forced.

        Args:
            source: as for `StepModel.encode`, [B, S].
            lengths: [B] int64.
            texts: M texts, ids without start and end token.
            inputs: the row of the source that each text belongs to [M].

        Returns:
            For each text of T tokens what predicts each of them and the end token, float32 [T + 1, D].
        """
        ...

    def state_log_probs(self, states: Sequence[np.ndarray], texts: Sequence[Sequence[int]], /) -> np.ndarray:
        """Return log p(text, end | input), float64 [M], from the states of the texts."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One text the search found."""

    tokens: list[int]  # ids without start and end token
    # The model's own log-probability of the text and its end token; logits processors, temperature and length
    # penalty do not touch it.
    log_prob: float
    score: float  # log_prob / (len(tokens) + 1), the end token counted; this is what users are shown
    finished: bool  # the model ended the text itself; False when it was cut at the length limit
    # What the candidates of one input are ordered by: the log-probability after the logits processors, divided
    # by the configured length penalty. Equals `log_prob` without either.
    rank_score: float

    @classmethod
    def of(cls, tokens: list[int], log_prob: float, finished: bool, rank_score: float) -> Hypothesis:
        """Build a hypothesis and its length-normalised score."""
        return cls(tokens, log_prob, log_prob / (len(tokens) + 1), finished, rank_score)


def to_model(model: StepModel, array: np.ndarray) -> Array:
    """Return an int64 array as the model wants it."""
    if _uses_arrays(model):
        return array
    import paddle  # takes seconds, and a model over arrays does not need it

    return paddle.to_tensor(array)


def to_array(values: Array) -> np.ndarray:
    """Return a tensor as an array, narrow floats as float32; memory on the host is not copied.

    Args:
        values: a tensor, or an array, which is returned as it is.

    Returns:
        An array the caller must not write to.
    """
    if isinstance(values, np.ndarray):
        return values
    if values.is_floating_point() and values.element_size() < 4:
        values = values.astype("float32")
    if values.place.is_cpu_place():
        return np.from_dlpack(values.detach())
    return np.asarray(values.numpy())


@contextmanager
def evaluation_mode(model: object) -> Iterator[None]:
    """Switch dropout and gradients off within a `with` block.

    Args:
        model: changed only if it is a `paddle.nn.Layer` in training mode.
    """
    if _uses_arrays(model):
        yield
        return
    import paddle

    layer: Any = model if isinstance(model, paddle.nn.Layer) and model.training else None
    if layer is not None:
        layer.eval()
    try:
        with paddle.no_grad():
            yield
    finally:
        if layer is not None:
            layer.train()


def _uses_arrays(model: object) -> bool:
    return bool(getattr(model, "uses_arrays", False))
