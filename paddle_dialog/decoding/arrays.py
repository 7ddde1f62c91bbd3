"""Conversion between the search, which works on NumPy arrays, and models, most of which work on Paddle's tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from paddle_dialog.decoding.interface import Array, StepModel


def to_model(model: StepModel, array: np.ndarray) -> Array:
    """Return an array as the model wants it.

    Args:
        model: offers `StepModel`.
        array: int64, any shape.
    """
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
