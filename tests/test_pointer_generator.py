"""The pointer-generator: against the formula in double precision, sums, copying, precision, gradients."""

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.layers.pointer_generator import extended_log_probs, first_positions, label_nll

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
