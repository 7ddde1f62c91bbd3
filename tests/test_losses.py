"""The loss of a sequence, and that of rated answers."""

from __future__ import annotations

import math

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.config.schema import PreferencesConfig
from paddle_dialog.training.losses import PreferenceLoss, SequenceCrossEntropy, preference_nll

LOGITS = np.random.default_rng(1).normal(0.0, 2.0, (2, 3, 5)).astype("float32")  # [B, T, V]
LABELS = np.array([[4, 1, 2], [3, 0, 0]])
MASK = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]], dtype="float32")
SMOOTHINGS = pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])


def log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype("float64")
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def by_hand(
    logits: np.ndarray, labels: np.ndarray, mask: np.ndarray, smoothing: float
) -> tuple[float, np.ndarray]:
    """Return the loss, and the plain negative log-likelihoods [B, T]: cross-entropy against a mixed distribution."""
    log_p = log_softmax(logits)
    one_hot = np.eye(logits.shape[-1])[labels]
    mixed = (1.0 - smoothing) * one_hot + smoothing / logits.shape[-1]
    losses = -(mixed * log_p).sum(axis=-1)
    return float((losses * mask).sum() / mask.sum()), -(one_hot * log_p).sum(axis=-1) * mask


def run(
    smoothing: float, logits: np.ndarray = LOGITS, labels: np.ndarray = LABELS, mask: np.ndarray = MASK
) -> tuple[float, np.ndarray]:
    criterion = SequenceCrossEntropy(smoothing)
    loss = criterion(paddle.to_tensor(logits), paddle.to_tensor(labels), paddle.to_tensor(mask))
    assert loss.shape == []
    return float(loss), criterion.token_nll.numpy()


def test_equal_logits_cost_the_logarithm_of_the_vocabulary() -> None:
    loss, nll = run(0.0, np.zeros([2, 3, 5], dtype="float32"))
    assert loss == pytest.approx(np.log(5.0))
    np.testing.assert_allclose(nll, np.log(5.0) * MASK, rtol=1e-6)


def test_kept_likelihoods_are_free_of_smoothing_and_of_the_graph() -> None:
    criterion = SequenceCrossEntropy(0.3)
    logits = paddle.to_tensor(LOGITS, stop_gradient=False)
    criterion(logits, paddle.to_tensor(LABELS), paddle.to_tensor(MASK))
    np.testing.assert_allclose(criterion.token_nll.numpy(), run(0.0)[1], rtol=1e-6)
    assert criterion.token_nll.stop_gradient


@SMOOTHINGS
def test_gradient_is_that_of_a_plain_computation(smoothing: float) -> None:
    logits = paddle.to_tensor(LOGITS, stop_gradient=False)
    SequenceCrossEntropy(smoothing)(logits, paddle.to_tensor(LABELS), paddle.to_tensor(MASK)).backward()
    mixed = (1.0 - smoothing) * np.eye(5)[LABELS] + smoothing / 5  # the derivative of the loss is p - target
    expected = (np.exp(log_softmax(LOGITS)) - mixed) * MASK[:, :, None] / MASK.sum()
    np.testing.assert_allclose(logits.grad.numpy(), expected, atol=1e-6)


def test_a_batch_without_tokens_costs_nothing() -> None:
    assert run(0.1, mask=np.zeros_like(MASK))[0] == 0.0


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.floats(0.1, 6.0))
def test_loss_equals_the_formula_for_any_logits(seed: int, smoothing: float, scale: float) -> None:
    """Logits closer than 64 to each other: beyond that Paddle's softmax on the CPU ends."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, scale, (3, 4, 7)).astype("float32")
    labels = rng.integers(0, 7, (3, 4))
    mask = (np.arange(4) < rng.integers(1, 5, (3, 1))).astype("float32")
    loss, nll = run(smoothing, logits, labels, mask)
    expected, expected_nll = by_hand(logits, labels, mask, smoothing)
    assert loss == pytest.approx(expected, rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(nll, expected_nll, rtol=1e-4, atol=1e-4)


def of_order(rewards: list[float], ratings: list[float], inputs: list[int], gap: float = 1.0) -> list[float]:
    total, count = preference_nll(
        *(paddle.to_tensor(values, "float32") for values in (rewards, ratings)),
        paddle.to_tensor(inputs, "int64"),
        gap,
    )
    return [float(total), float(count)]


def test_two_answers_are_a_logistic_regression() -> None:
    found = of_order([0.3, 1.0], [2, 5], [0, 0])
    assert found == pytest.approx([math.log(1 + math.exp(-0.7)), 1.0], rel=1e-5)
    assert of_order([1.0, 0.3], [2, 5], [0, 0])[0] == pytest.approx(math.log(1 + math.exp(0.7)), rel=1e-5)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.floats(-3, 3)), min_size=1, max_size=12))
def test_it_is_the_mean_over_the_pairs_of_each_input(answers: list[tuple[int, int, float]]) -> None:
    total, count = 0.0, 0
    for wanted in range(4):
        own = [(rating, reward) for number, rating, reward in answers if number == wanted]
        pairs = [math.log1p(math.exp(s - r)) for a, r in own for b, s in own if a - b >= 2]
        total, count = total + (sum(pairs) / len(pairs) if pairs else 0.0), count + bool(pairs)
    inputs, ratings, rewards = (list(column) for column in zip(*answers, strict=True))
    assert of_order(rewards, ratings, inputs, 2.0) == pytest.approx([total, count], abs=1e-4)


def test_the_loss_is_that_of_the_examples_and_of_the_order() -> None:
    """One example of two tokens, and an input with two answers, the first of which has two texts."""
    draws = np.random.default_rng(3)
    logits = draws.normal(size=(4, 2, 5)).astype(np.float32)
    label = draws.integers(5, size=(4, 2))
    text_mask = np.array([[1, 1], [1, 0], [1, 1]], np.float32)
    before = np.array([-1.5, -2.5], np.float32)
    criterion = PreferenceLoss(
        SequenceCrossEntropy(), PreferencesConfig(strength=0.4, least_gap=1.0, examples_weight=0.25)
    )
    mask, ratings = np.ones((1, 2), np.float32), np.array([7, 3], np.float32)
    arrays = logits, label, mask, text_mask, np.array([0, 0, 1]), np.array([0, 0]), ratings, before
    tensors = [paddle.to_tensor(array) for array in arrays]
    tensors[0].stop_gradient = False
    loss = criterion(*tensors)

    exponentials = np.exp(logits.astype(np.float64))
    log_probs = np.log(exponentials / exponentials.sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_probs, label[..., None], -1)[..., 0]  # [4, 2]
    texts = (chosen[1:] * text_mask).sum(-1)
    rewards = 0.4 * (np.array([texts[0] + texts[1], texts[2]]) - before)
    order = math.log1p(math.exp(rewards[1] - rewards[0]))
    assert float(loss) == pytest.approx(0.25 * -chosen[0].mean() + order, rel=1e-5)
    assert criterion.token_nll.numpy() == pytest.approx(-chosen[:1], rel=1e-5)
    loss.backward()
    assert all(np.abs(tensors[0].grad.numpy()[row]).sum() > 0 for row in range(4))


def test_without_rated_answers_it_is_the_cross_entropy() -> None:
    draws = np.random.default_rng(4)
    arrays = draws.normal(size=(2, 3, 5)).astype(np.float32), draws.integers(5, size=(2, 3))
    tensors = [paddle.to_tensor(array) for array in (*arrays, np.ones((2, 3), np.float32))]
    own = SequenceCrossEntropy()
    found = PreferenceLoss(SequenceCrossEntropy(), PreferencesConfig(examples_weight=0.1))(*tensors)
    assert float(found) == float(own(*tensors))
