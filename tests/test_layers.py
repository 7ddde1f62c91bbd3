"""Layers against formulas and Paddle's own: masks, attention, dropout, embeddings, recurrence, pointer-generator."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paddle import nn

from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.layers.embeddings import SinusoidalPositions, TiedProjection, TokenEmbedding
from paddle_dialog.layers.masks import additive_mask, causal_mask, length_mask
from paddle_dialog.layers.operators import Dropout, dropout_factors, merge_heads, split_heads
from paddle_dialog.layers.pointer_generator import extended_log_probs, first_positions, label_nll
from paddle_dialog.layers.recurrent import Attention, AttentionCell, RecurrentEncoder, Score
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


BATCH, SOURCE, WIDTH = 3, 5, 6
CONFIG = LstmAttentionConfig(embedding_size=WIDTH, hidden_size=WIDTH, dropout=0.5)


def drawn(*shape, seed):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def differs(call):
    """Return whether the first of what a call returns differs between two calls."""
    paddle.seed(3)
    first, second = (call()[0].numpy() for _ in range(2))
    return not np.array_equal(first, second)


@pytest.mark.parametrize("score", ["additive", "dot", "scaled_dot", "bilinear"])
def test_scores_equal_the_formulas(score):
    layer = Score(score, WIDTH)
    query, values = drawn(BATCH, WIDTH, seed=50), drawn(BATCH, SOURCE, WIDTH, seed=51)
    found = layer(query, layer.prepare(values)).numpy()
    w = {name: parameter.numpy() for name, parameter in layer.named_parameters()}
    for row, place in np.ndindex(BATCH, SOURCE):
        q, k = query.numpy()[row], values.numpy()[row, place]
        if score == "additive":
            hidden = np.tanh(k @ w["key_proj.weight"] + q @ w["query_proj.weight"])
            expected = (hidden @ w["score_proj.weight"])[0]
        elif score == "bilinear":
            expected = q @ (k @ w["key_proj.weight"])
        else:
            expected = q @ k / (np.sqrt(WIDTH) if score == "scaled_dot" else 1.0)
        np.testing.assert_allclose(found[row, place], expected, atol=1e-5)


@pytest.mark.parametrize(("layers", "drops"), [(1, False), (2, True)])
def test_encoder_drops_between_layers_only(layers, drops):
    encoder = RecurrentEncoder(replace(CONFIG, num_layers=layers))
    inputs = drawn(BATCH, SOURCE, WIDTH, seed=5), paddle.to_tensor([5, 2, 3])
    assert differs(lambda: encoder(*inputs)) is drops


def test_dropout_acts_on_cells_in_training_only():
    cell = AttentionCell(CONFIG)
    memory = cell.prepare_memory(drawn(BATCH, SOURCE, WIDTH, seed=80), paddle.ones([BATCH, SOURCE], "bool"))
    states = [(drawn(BATCH, WIDTH, seed=n), drawn(BATCH, WIDTH, seed=n + 9)) for n in range(2)]
    inputs = drawn(BATCH, WIDTH, seed=81), cell.initial_states(states), memory
    assert differs(lambda: cell(*inputs))
    cell.eval()
    assert not differs(lambda: cell(*inputs))


VOCABULARY, EXTRA = 7, 2
COPY_IDS = np.array([[3, 7, 3, 8], [5, 0, 0, 0]])


def attention(rows, length, seed):
    weights = np.random.default_rng(seed).random((rows, length))
    return (weights / weights.sum(-1, keepdims=True)).astype("float32")


def formula(logits, gate, weights, ids):
    """Return p over the extended vocabulary, word by word."""
    result = np.zeros((len(logits), logits.shape[1] + EXTRA))
    for row in range(len(logits)):
        p_gen = 1 / (1 + np.exp(-gate[row].astype("float64")))
        powers = np.exp(logits[row].astype("float64") - logits[row].max())
        result[row, : logits.shape[1]] = p_gen * powers / powers.sum()
        for position, word in enumerate(ids[row]):
            result[row, word] += (1 - p_gen) * weights[row, position]
    return result


def log_probs(logits, gate, weights, dtype="float32"):
    ids = paddle.to_tensor(COPY_IDS)
    tensors = (paddle.to_tensor(x).astype(dtype) for x in (logits, gate, weights))
    return extended_log_probs(*tensors, ids, first_positions(ids), EXTRA).numpy()


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.1, 30))
def test_probabilities_are_the_formula_and_sum_to_one(seed, spread):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, spread, (2, VOCABULARY)).astype("float32")
    gate, weights = rng.normal(0, spread, 2).astype("float32"), attention(2, 4, seed)
    probabilities = np.exp(log_probs(logits, gate, weights).astype("float64"))
    np.testing.assert_allclose(probabilities, formula(logits, gate, weights, COPY_IDS), rtol=2e-4, atol=1e-12)
    np.testing.assert_allclose(probabilities.sum(-1), 1.0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("gate", [-40.0, 0.3, 40.0])
def test_half_precision_stays_finite_and_sums_to_one(dtype, gate):
    logits = np.random.default_rng(1).normal(0, 40, (2, VOCABULARY)).astype("float32")
    scores = log_probs(logits, np.full(2, gate, "float32"), attention(2, 4, 2), dtype)
    assert scores.dtype == np.float32 and np.isfinite(scores).all()
    np.testing.assert_allclose(np.exp(scores.astype("float64")).sum(-1), 1.0, atol=5e-3)


@pytest.mark.parametrize("gate", [-60.0, 0.0, 60.0])
def test_the_label_nll_agrees_with_the_whole_distribution(gate):
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 3, (2, VOCABULARY)).astype("float32")
    gates, weights = np.full(2, gate, "float32"), attention(2, 4, 4)
    scores = log_probs(logits, gates, weights)
    labels = np.arange(VOCABULARY + EXTRA)
    tiled = (np.repeat(x[:, None], len(labels), 1) for x in (logits, gates, weights))
    nll, generated = label_nll(
        *(paddle.to_tensor(x) for x in tiled),
        paddle.to_tensor(COPY_IDS),
        paddle.to_tensor(np.tile(labels, (2, 1))),
    )
    possible = np.exp(scores) > 1e-25  # below, both say "never" with numbers of their own
    np.testing.assert_allclose(-nll.numpy()[possible], scores[possible], rtol=1e-4, atol=1e-5)
    assert (nll.numpy()[~possible] > 50).all()
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(np.exp(-generated.numpy()[:, :VOCABULARY]), softmax, rtol=1e-4)


def test_gradients_are_finite_where_a_label_is_impossible():
    logits, gate = paddle.zeros([1, 2, VOCABULARY]), paddle.to_tensor([[90.0, -90.0]])
    weights = paddle.to_tensor([[[0.0, 1.0, 0.0, 0.0]] * 2])
    for tensor in (logits, gate, weights):
        tensor.stop_gradient = False
    label = paddle.to_tensor([[8, 2]])  # to be copied behind a closed gate, to be generated behind the other
    nll, _ = label_nll(logits, gate, weights, paddle.to_tensor(COPY_IDS[:1]), label)
    nll.sum().backward()
    assert np.isfinite(nll.numpy()).all()
    assert all(np.isfinite(tensor.grad.numpy()).all() for tensor in (logits, gate, weights))
    assert gate.grad.numpy()[0, 0] > 0 > gate.grad.numpy()[0, 1]  # each is pushed towards its label
