"""The loss of a sequence, and that of rated answers."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.training.losses import SequenceCrossEntropy

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
    smoothing: float, logits: np.ndarray, labels: np.ndarray, mask: np.ndarray
) -> tuple[float, np.ndarray]:
    criterion = SequenceCrossEntropy(smoothing)
    loss = criterion(paddle.to_tensor(logits), paddle.to_tensor(labels), paddle.to_tensor(mask))
    assert loss.shape == []
    return float(loss), criterion.token_nll.numpy()


@SMOOTHINGS
def test_gradient_is_that_of_a_plain_computation(smoothing):
    criterion, logits = SequenceCrossEntropy(smoothing), paddle.to_tensor(LOGITS, stop_gradient=False)
    criterion(logits, paddle.to_tensor(LABELS), paddle.to_tensor(MASK)).backward()
    assert criterion.token_nll.stop_gradient
    mixed = (1.0 - smoothing) * np.eye(5)[LABELS] + smoothing / 5  # the derivative of the loss is p - target
    expected = (np.exp(log_softmax(LOGITS)) - mixed) * MASK[:, :, None] / MASK.sum()
    np.testing.assert_allclose(logits.grad.numpy(), expected, atol=1e-6)


def test_a_batch_without_tokens_costs_nothing():
    assert run(0.1, LOGITS, LABELS, np.zeros_like(MASK))[0] == 0.0


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.floats(0.1, 6.0))
def test_loss_equals_the_formula_for_any_logits(seed, smoothing, scale):
    """Logits closer than 64 to each other: beyond that Paddle's softmax on the CPU ends."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, scale, (3, 4, 7)).astype("float32")
    labels = rng.integers(0, 7, (3, 4))
    mask = (np.arange(4) < rng.integers(1, 5, (3, 1))).astype("float32")
    loss, nll = run(smoothing, logits, labels, mask)
    expected, expected_nll = by_hand(logits, labels, mask, smoothing)
    assert loss == pytest.approx(expected, rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(nll, expected_nll, rtol=1e-4, atol=1e-4)
