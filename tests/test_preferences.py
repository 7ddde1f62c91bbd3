"""Learning from rated answers: the loss."""

from __future__ import annotations

import math

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.config.schema import PreferencesConfig
from paddle_dialog.training.losses import PreferenceLoss, SequenceCrossEntropy, preference_nll


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
