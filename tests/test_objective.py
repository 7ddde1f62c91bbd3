"""Objectives: by hand, in whatever batches, and perplexity beside PaddleNLP's on the same logits."""

import math
from collections import namedtuple

import numpy as np
import paddle
import pytest
from paddlenlp.metrics import Perplexity as PaddleNLPPerplexity

from paddle_dialog.metrics import Accuracy, Perplexity
from paddle_dialog.training.losses import SequenceCrossEntropy
from paddle_dialog.training.progress import Meter

VOCABULARY, STEPS = 11, 5

Labelled = namedtuple("Labelled", "label")
Masked = namedtuple("Masked", "mask")


def test_figures_by_hand_and_which_is_better():
    perplexity, accuracy = Perplexity(), Accuracy()
    assert perplexity.rank(20.0) < perplexity.rank(21.0) and accuracy.rank(0.9) < accuracy.rank(0.8)
    assert (perplexity.show(20.12345), accuracy.show(0.81239)) == ("20.123", "0.8124")
    assert perplexity.figure([3 * math.log(2), 3]) == pytest.approx(2)
    assert perplexity.figure([1e6, 3]) == math.inf
    assert accuracy.figure([3, 4]) == 0.75
    for objective in (perplexity, accuracy):
        assert math.isnan(objective.figure([0.0, 0.0])) and math.isnan(objective.figure([math.nan, 2.0]))


def test_accuracy_counts_the_highest_scores():
    scores = paddle.to_tensor([[0.1, 0.9], [2.0, 1.0], [0.0, 3.0]])
    meter = Meter(Accuracy())
    meter.add(paddle.to_tensor(1.0), Accuracy().sums(None, [scores], Labelled(paddle.to_tensor([1, 1, 1]))))
    assert meter.read() == pytest.approx((1.0, 2 / 3))
    spoilt = paddle.to_tensor([[math.nan, 0.0]])
    meter.add(paddle.to_tensor(1.0), Accuracy().sums(None, [spoilt], Labelled(paddle.to_tensor([0]))))
    assert math.isnan(meter.read()[1])


@pytest.fixture(scope="module")
def examples():
    """Return logits, labels and masks of 10 random sequences of 1 to STEPS real tokens."""
    random = np.random.default_rng(3)
    table = random.normal(size=(VOCABULARY, VOCABULARY)).astype("float32") * 3
    logits = table[random.integers(0, VOCABULARY, (10, STEPS))]  # [10, T, V]
    labels = random.integers(0, VOCABULARY, (10, STEPS))
    masks = (np.arange(STEPS) < random.integers(1, STEPS + 1, 10)[:, None]).astype("float32")
    return logits, labels, masks


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("size", [1, 4, 10])
def test_perplexity_agrees_with_paddlenlp_and_numpy_in_any_batches(examples, size, label_smoothing):
    criterion, objective = SequenceCrossEntropy(label_smoothing), Perplexity()
    meter, theirs = Meter(objective), PaddleNLPPerplexity()
    for start in range(0, 10, size):
        batch = [paddle.to_tensor(part[start : start + size]) for part in examples]
        logits, _, masks = batch
        meter.add(criterion(*batch), objective.sums(criterion, [logits], Masked(masks)))
        theirs.update(*(np.atleast_1d(part.numpy()) for part in theirs.compute(*batch)))
    ours = meter.read()[1]
    assert ours == pytest.approx(float(theirs.accumulate()), rel=1e-5)
    logits, _, masks = (part.astype("float64") for part in examples)
    nll = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, examples[1][..., None], -1)[..., 0]
    assert ours == pytest.approx(np.exp((nll * masks).sum() / masks.sum()), rel=1e-5)


def test_sums_are_added_in_double_precision():
    meter = Meter(Perplexity())
    for nll, tokens in [(2.0**25, 2.0**25), *[(1.0, 0.0)] * 4]:
        meter.add(paddle.zeros([]), [paddle.to_tensor(nll), paddle.to_tensor(tokens)])
    assert meter.read()[1] == math.exp((2.0**25 + 4) / 2.0**25)
