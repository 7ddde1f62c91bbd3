"""Decoding states: nested tuples, lists and dicts of tensors whose first axis is the batch; None where empty."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import Tensor


def gather_rows(state: Any, index: Tensor) -> Any:
    """Select rows of every tensor of a state, keeping its structure.

    Args:
        state: tensors [N, ...] in nested tuples (named ones too), lists and dicts; None stays None.
        index: int64 [M], the rows to take, repeated or left out as a search needs.

    Returns:
        The same structure with tensors [M, ...].
    """
    if state is None:
        return None
    if isinstance(state, Tensor):
        return paddle.index_select(state, index, axis=0)
    if isinstance(state, dict):
        return {key: gather_rows(value, index) for key, value in state.items()}
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(gather_rows(value, index) for value in state))
    return type(state)(gather_rows(value, index) for value in state)
