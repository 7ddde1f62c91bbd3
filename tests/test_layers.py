"""Layers: masks, attention, heads, the linear map, dropout and embeddings, against formulas and Paddle's own."""

from __future__ import annotations

import math

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paddle import nn

from paddle_dialog.layers.embeddings import SinusoidalPositions, TiedProjection, TokenEmbedding
from paddle_dialog.layers.masks import additive_mask, causal_mask, length_mask
from paddle_dialog.layers.operators import Dropout, dropout_factors, merge_heads, split_heads
from paddle_dialog.layers.recurrent import Attention
from paddle_dialog.layers.sinusoids import sinusoids


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 9))
@settings(deadline=None, max_examples=25)
def test_length_mask_is_a_prefix_of_each_row(lengths, max_length):
    mask = length_mask(paddle.to_tensor(lengths, dtype="int64"), max_length).numpy()
    assert mask.shape == (len(lengths), max_length)
    for row, length in zip(mask, lengths, strict=True):
        kept = min(length, max_length)
        assert row.tolist() == [True] * kept + [False] * (max_length - kept)


def test_causal_mask_sees_self_and_past():
    mask = causal_mask(3)
    assert mask.dtype == paddle.bool
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, True, True]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_additive_mask_is_finite_and_zero_where_allowed(dtype):
    mask = additive_mask(paddle.to_tensor([True, False]), dtype)
    assert mask.dtype == getattr(paddle, dtype)
    allowed, forbidden = mask.astype("float64").tolist()
    assert allowed == 0.0
    assert np.isfinite(forbidden)
    assert forbidden < -30000


def test_softmax_drops_masked_scores_and_a_masked_row_is_not_nan():
    mask = paddle.to_tensor([[True, True, False], [False, False, False]])
    scores = paddle.to_tensor([[0.0, 0.0, 50.0], [1.0, 2.0, 3.0]])
    weights = paddle.nn.functional.softmax(scores + additive_mask(mask)).numpy()
    np.testing.assert_allclose(weights[0], [0.5, 0.5, 0.0], atol=1e-20)
    assert np.isfinite(weights[1]).all()


NAMES = pytest.mark.parametrize("name", ["additive", "dot", "scaled_dot", "bilinear"])


@NAMES
def test_a_fully_masked_row_gives_zero_and_finite_gradients(name):
    attention, query = Attention(name, 4), paddle.rand([2, 4])
    values = paddle.rand([2, 3, 4])
    values.stop_gradient = False
    mask = paddle.to_tensor([[False] * 3, [True] * 3])
    context, weights = attention(query, attention.score.prepare(values), values, mask)
    context.sum().backward()
    assert not context.numpy()[0].any() and not weights.numpy()[0].any()
    assert np.isfinite(values.grad.numpy()).all()


def tensor(*shape):
    values = np.random.default_rng(1).standard_normal(shape).astype("float32")
    return paddle.to_tensor(values, stop_gradient=False)


@pytest.mark.parametrize("depths", [[12], [12, 12, 12], [12, 12, 6]])
@pytest.mark.parametrize("length", [1, 5])
def test_splitting_is_a_transpose_and_so_is_its_gradient(depths, length):
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
def test_merging_undoes_splitting(length):
    x = tensor(2, length, 12)
    merged = merge_heads(split_heads(x, [12], 3)[0])
    np.testing.assert_array_equal(merged.numpy(), x.numpy())
    upstream = tensor(*x.shape)
    merged.backward(upstream)
    np.testing.assert_array_equal(x.grad.numpy(), upstream.numpy())


def test_the_share_that_is_dropped_and_what_the_rest_is_divided_by():
    paddle.seed(3)
    factors = dropout_factors([400, 500], 0.2).numpy()
    np.testing.assert_allclose(np.unique(factors), [0.0, 1.25])
    assert (factors == 0.0).mean() == pytest.approx(0.2, abs=0.004)  # over four standard deviations
    # No neighbour depends on the one before it.
    assert ((factors[:, 1:] == 0.0) & (factors[:, :-1] == 0.0)).mean() == pytest.approx(0.04, abs=0.003)


def test_a_mask_is_shared_along_the_other_axes_and_is_that_of_the_gradient():
    paddle.seed(4)
    x = paddle.rand([3, 5, 7]) + 1.0
    x.stop_gradient = False
    y = Dropout(0.5, axis=[0, 2])(x)
    y.sum().backward()
    factors = (y / x).numpy()
    np.testing.assert_allclose(factors, np.broadcast_to(factors[:, :1], factors.shape), rtol=1e-6)
    assert len({row.tobytes() for row in factors[:, 0] > 0.0}) == 3
    np.testing.assert_allclose(x.grad.numpy(), factors, rtol=1e-6)


def test_a_seed_brings_the_same_mask_again():
    x, masks = paddle.ones([64]), []
    for seed in (1, 1, 2):
        paddle.seed(seed)
        masks.append(Dropout(0.5)(x).numpy())
    np.testing.assert_array_equal(masks[0], masks[1])
    assert (masks[0] != masks[2]).any()


def test_evaluation_and_the_ends_of_the_range():
    x = paddle.rand([4, 4])
    layer = Dropout(0.5)
    layer.eval()
    assert layer(x) is x
    assert Dropout(0.0)(x) is x
    assert not Dropout(1.0)(x).numpy().any()


class TiedModel(nn.Layer):
    """An embedding and the output layer that shares its table."""

    def __init__(self, bias):
        super().__init__()
        self.embedding = TokenEmbedding(7, 4)
        self.projection = TiedProjection(self.embedding, bias)

    def forward(self, ids):
        return self.projection(self.embedding(ids))


def test_initial_vectors_have_deviation_one_over_root_size():
    paddle.seed(5)
    table = TokenEmbedding(2000, 64).weight.numpy()
    assert (table[0] == 0).all()
    np.testing.assert_allclose(table[1:].std(), 1 / 8, rtol=0.02)
    np.testing.assert_allclose(table[1:].mean(), 0, atol=2e-3)


def test_padding_gets_no_gradient():
    embedding = TokenEmbedding(5, 3)
    vectors = embedding(paddle.to_tensor([[1, 0, 0]]))
    assert (vectors.numpy()[0, 1:] == 0).all()
    vectors.sum().backward()
    assert embedding.weight.grad.numpy().sum(axis=1).tolist() == [0, 3, 0, 0, 0]


def test_tied_weight_gets_gradients_from_both_ends_and_follows_loading():
    model, other = TiedModel(bias=True), TiedModel(bias=True)
    ids = paddle.to_tensor([[1]])
    model(ids).sum().backward()
    table = model.embedding.weight.numpy()
    expected = np.tile(table[1], (7, 1))  # from the projection: the feature, for every token
    expected[1] += table.sum(axis=0)  # from the lookup of token 1
    np.testing.assert_allclose(model.embedding.weight.grad.numpy(), expected, atol=1e-5)
    other.set_state_dict(model.state_dict())
    np.testing.assert_array_equal(other(ids).numpy(), model(ids).numpy())


def test_sinusoidal_values_by_hand():
    table = sinusoids(max_length=3, width=4)  # frequencies 1 and 1 / 10000^(2/4) = 0.01
    assert table.dtype == np.float32
    by_hand = [
        [0.0, 1.0, 0.0, 1.0],
        [0.8414710, 0.5403023, 0.0099998, 0.9999500],
        [0.9092974, -0.4161468, 0.0199987, 0.9998000],
    ]
    np.testing.assert_allclose(table, by_hand, atol=1e-6)


def test_odd_size_ends_with_a_sine():
    table = sinusoids(max_length=2, width=3)
    assert table.shape == (2, 3)
    np.testing.assert_allclose(table[1, 2], math.sin(10000 ** (-2 / 3)), atol=1e-7)


def test_positions_begin_the_sequence():
    positions = SinusoidalPositions(max_length=10, width=6)
    np.testing.assert_array_equal(positions(3).numpy()[0], sinusoids(max_length=3, width=6))
    with pytest.raises(ValueError, match="11 positions are needed, and there are only 10"):
        positions(11)
