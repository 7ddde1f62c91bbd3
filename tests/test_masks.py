"""Masks: hand-written cases and the properties every length mask has."""

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.layers.masks import additive_mask, causal_mask, length_mask


def test_length_mask_marks_real_tokens() -> None:
    mask = length_mask(paddle.to_tensor([3, 0, 1], dtype="int64"), 3)
    assert mask.dtype == paddle.bool
    assert mask.tolist() == [[True, True, True], [False, False, False], [True, False, False]]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 9))
@settings(deadline=None, max_examples=25)
def test_length_mask_is_a_prefix_of_each_row(lengths: list[int], max_length: int) -> None:
    mask = length_mask(paddle.to_tensor(lengths, dtype="int64"), max_length).numpy()
    assert mask.shape == (len(lengths), max_length)
    for row, length in zip(mask, lengths, strict=True):
        kept = min(length, max_length)
        assert row.tolist() == [True] * kept + [False] * (max_length - kept)


def test_causal_mask_sees_self_and_past() -> None:
    mask = causal_mask(3)
    assert mask.dtype == paddle.bool
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, True, True]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_additive_mask_is_finite_and_zero_where_allowed(dtype: str) -> None:
    mask = additive_mask(paddle.to_tensor([True, False]), dtype)
    assert mask.dtype == getattr(paddle, dtype)
    allowed, forbidden = mask.astype("float64").tolist()
    assert allowed == 0.0
    assert np.isfinite(forbidden)
    assert forbidden < -30000


def test_additive_mask_takes_the_type_of_the_scores() -> None:
    scores = paddle.zeros([2], dtype="float64")
    assert additive_mask(paddle.to_tensor([True, False]), scores.dtype).dtype == paddle.float64


def test_softmax_drops_masked_scores_and_a_masked_row_is_not_nan() -> None:
    mask = paddle.to_tensor([[True, True, False], [False, False, False]])
    scores = paddle.to_tensor([[0.0, 0.0, 50.0], [1.0, 2.0, 3.0]])
    weights = paddle.nn.functional.softmax(scores + additive_mask(mask)).numpy()
    np.testing.assert_allclose(weights[0], [0.5, 0.5, 0.0], atol=1e-20)
    assert np.isfinite(weights[1]).all()
