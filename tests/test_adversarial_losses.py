"""The losses of adversarial training, and the words that are drawn for them, by hand."""

import math

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest

from paddle_dialog.layers.pointer_generator import extended_log_probs, first_positions, log_mixture
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.dataset import NO_EMOTION
from tasks.empathetic.network.adversarial import (
    WRITTEN,
    emotional_loss,
    frozen,
    semantic_loss,
    written_words,
)


def test_the_losses_are_those_computed_by_hand() -> None:
    sigmoid = lambda x: 1.0 / (1.0 + math.exp(-x))  # noqa: E731
    logits = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, -2.0]], np.float32)
    rows = [-(math.log(sigmoid(p)) + math.log(sigmoid(-w))) / 2 - math.log(sigmoid(d)) for p, w, d in logits]
    assert float(semantic_loss(paddle.to_tensor(logits))) == pytest.approx(np.mean(rows), rel=1e-5)

    carried = np.zeros([2, 3, WRITTEN + 1], np.float32)
    carried[0, 0, 5], carried[0, 1, WRITTEN], carried[0, 2, 5] = math.log(32.0), math.log(96.0), math.log(8.0)
    loss = emotional_loss(
        paddle.to_tensor(carried), paddle.to_tensor([5, NO_EMOTION])
    )  # row 1 counts nothing
    by_hand = (-math.log(32 / 64) - math.log(96 / 128)) / 2 - math.log(8 / 40)
    assert float(loss) == pytest.approx(by_hand, rel=1e-5)
    unknown = emotional_loss(paddle.to_tensor(carried), paddle.to_tensor([NO_EMOTION, NO_EMOTION]))
    assert float(unknown) == 0.0


def test_the_mixture_is_that_of_the_pointer_generator() -> None:
    rng = np.random.default_rng(0)
    logits, gate = (paddle.to_tensor(rng.normal(size=shape).astype("float32")) for shape in ([2, 6], [2]))
    attention = F.softmax(paddle.to_tensor(rng.normal(size=[2, 4]).astype("float32")))
    ids = paddle.to_tensor([[1, 6, 1, 7], [5, 5, 2, 0]])
    apart = np.exp(log_mixture(logits, gate, attention).numpy())  # [2, 6 + 4]
    np.testing.assert_allclose(apart.sum(-1), 1.0, rtol=1e-5)
    joined = np.concatenate([apart[:, :6], np.zeros([2, 2])], axis=1)
    for row in range(2):
        np.add.at(joined[row], ids.numpy()[row], apart[row, 6:])
    expected = np.exp(extended_log_probs(logits, gate, attention, ids, first_positions(ids), 2).numpy())
    np.testing.assert_allclose(joined, expected, atol=1e-6)


def test_words_are_drawn_by_their_probability_and_pass_the_gradient_of_the_softmax() -> None:
    paddle.seed(3)
    words = paddle.eye(5)  # so that a vector says which word it is
    logits = paddle.log(paddle.to_tensor([0.1, 0.2, 0.3, 0.35, 0.05])).expand([1, 4000, 5]).clone()
    gate, attention = paddle.zeros([1, 4000]), paddle.to_tensor([0.25, 0.75]).expand([1, 4000, 2])
    source = paddle.to_tensor([[4, 9]])  # 9 is outside the vocabulary and so unknown
    drawn = written_words([logits, gate, attention], [source], words, 1.0).numpy()
    assert set(np.unique(drawn.round(5))) == {0.0, 1.0} and (drawn.sum(-1).round(5) == 1.0).all()
    shares = np.array([0.05, 0.1, 0.15, 0.175, 0.025 + 0.125])
    shares[Vocabulary.unk_id] += 0.375
    np.testing.assert_allclose(drawn.mean((0, 1)), shares, atol=0.03)

    logits.stop_gradient = False
    few = logits[:, :3]
    paddle.seed(8)
    vectors = written_words([few], [], words, 0.7)
    weights = paddle.to_tensor(np.random.default_rng(1).normal(size=[1, 3, 5]).astype("float32"))
    (gradient,) = paddle.grad((vectors * weights).sum(), few, retain_graph=True)
    paddle.seed(8)
    noise = -paddle.log(-paddle.log(paddle.rand([1, 3, 5])))
    soft = F.softmax((few + noise) / 0.7)
    (expected,) = paddle.grad((soft * weights).sum(), few)
    np.testing.assert_allclose(gradient.numpy(), expected.numpy(), atol=1e-5)
    np.testing.assert_array_equal(vectors.argmax(-1).numpy(), soft.argmax(-1).numpy())


def test_a_frozen_layer_passes_gradients_and_takes_none() -> None:
    layer, x = paddle.nn.Linear(2, 1), paddle.ones([1, 2])
    layer.bias.stop_gradient, x.stop_gradient = True, False
    with frozen(layer):
        y = layer(x)
    y.sum().backward()
    assert layer.weight.grad is None and x.grad is not None
    assert not layer.weight.stop_gradient and layer.bias.stop_gradient
