"""Heads taken apart and put together by gathering rows, against transposes."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from paddle_dialog.layers.operators import merge_heads, split_heads


def tensor(*shape: int) -> paddle.Tensor:
    values = np.random.default_rng(1).standard_normal(shape).astype("float32")
    return paddle.to_tensor(values, stop_gradient=False)


@pytest.mark.parametrize("depths", [[12], [12, 12, 12], [12, 12, 6]])
@pytest.mark.parametrize("length", [1, 5])
def test_splitting_is_a_transpose_and_so_is_its_gradient(depths: list[int], length: int) -> None:
    x = tensor(2, length, sum(depths))
    expected = [part.reshape([2, length, 3, -1]).transpose([0, 2, 1, 3]) for part in x.split(depths, -1)]
    upstream = [tensor(*part.shape) for part in expected]
    paddle.autograd.backward(expected, upstream, retain_graph=True)
    gradient = x.grad.numpy().copy()
    x.clear_gradient(set_to_zero=False)
    found = split_heads(x, depths, 3)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    paddle.autograd.backward(found, upstream)
    np.testing.assert_array_equal(x.grad.numpy(), gradient)


@pytest.mark.parametrize("length", [1, 5])
def test_merging_undoes_splitting(length: int) -> None:
    x = tensor(2, length, 12)
    merged = merge_heads(split_heads(x, [12], 3)[0])
    np.testing.assert_array_equal(merged.numpy(), x.numpy())
    upstream = tensor(*x.shape)
    merged.backward(upstream)
    np.testing.assert_array_equal(x.grad.numpy(), upstream.numpy())
