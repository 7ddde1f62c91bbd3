"""Metrics of classes and of text, objectives and losses: by hand, and against other libraries."""

from __future__ import annotations

import math
import warnings
from collections import namedtuple

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paddlenlp.metrics import Perplexity as PaddleNLPPerplexity
from sklearn.metrics import confusion_matrix as by_sklearn
from sklearn.metrics import f1_score as f1_by_sklearn

from paddle_dialog.metrics import (
    Accuracy,
    Perplexity,
    calibration_error,
    confusion_matrix,
    corpus_bleu,
    distinct_n,
    f1_score,
    perplexity_per_example,
    token_perplexity,
)
from paddle_dialog.training.losses import SequenceCrossEntropy
from paddle_dialog.training.progress import Meter


def test_confusion_and_f1_are_those_of_scikit_learn():
    generator = np.random.default_rng(5)
    gold, predicted = generator.integers(0, 2, 200), generator.integers(0, 2, 200)
    confusion = confusion_matrix(predicted, gold, 2)
    np.testing.assert_array_equal(confusion, by_sklearn(gold, predicted))
    assert f1_score(confusion) == pytest.approx(f1_by_sklearn(gold, predicted))
    assert f1_score(confusion_matrix(np.zeros(3, int), np.zeros(3, int), 2)) == 0.0


def test_calibration_error_is_the_weighted_gap_of_each_bin():
    probabilities = np.array([[0.1, 0.9], [0.91, 0.09], [0.4, 0.6]])
    # The first two share a bin (0.8667 to 0.9333): one of them is right. The third is right at 0.6.
    expected = (abs(1 - 0.9 - 0.91) + abs(1 - 0.6)) / 3
    assert calibration_error(probabilities, np.array([1, 1, 1])) == pytest.approx(expected)
    # One at the edge belongs to the bin below: 1.0 and 0.95 are of the last bin, and one of the two is right.
    found = calibration_error(np.array([[0.0, 1.0], [0.05, 0.95]]), np.array([0, 1]))
    assert found == pytest.approx(0.95 / 2)


def test_token_perplexity_by_hand():
    # probabilities 1/2, 1/4, 1/8: the geometric mean is 1/4
    assert token_perplexity(math.log(2) + math.log(4) + math.log(8), 3) == pytest.approx(4)
    assert token_perplexity(0.0, 7) == 1.0
    assert token_perplexity(1e6, 1) == math.inf


def test_perplexity_per_example_by_hand():
    # one token at 1/2, three at 1/8: the mean of log 2 and log 8 is log 4; over tokens it is log 2**2.5
    nll, tokens = [math.log(2), 3 * math.log(8)], [1, 3]
    assert perplexity_per_example(nll, tokens) == pytest.approx(4)
    assert token_perplexity(sum(nll), sum(tokens)) == pytest.approx(2**2.5)


def test_distinct_by_hand():
    replies = [["i", "am", "sorry"], ["i", "am", "glad"], ["oh"]]
    assert distinct_n(replies, 1) == pytest.approx(5 / 7)  # i am sorry glad oh
    assert distinct_n(replies, 2) == pytest.approx(3 / 4)  # "i am" twice, "am sorry", "am glad"
    assert distinct_n(replies, 3) == 1.0
    assert distinct_n(replies, 4) == 0.0
    assert distinct_n([], 1) == 0.0
    assert distinct_n(["ab", "ab"], 2) == pytest.approx(1 / 2)  # no n-gram crosses texts


def test_bleu_by_hand():
    # hypothesis a b c d e, reference a b c d x y: clipped precisions 4/5, 3/4, 2/3, 1/2; brevity exp(1 - 6/5)
    expected = 100 * math.exp(1 - 6 / 5) * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert corpus_bleu([list("abcde")], [list("abcdxy")]) == pytest.approx(expected)
    # It is no mean of sentences: counts add up before the ratio.
    # 1-grams 5/6, 2-grams 3/4, 3-grams 2/2, 4-grams 1/1; equal lengths
    expected = 100 * (5 / 6 * 3 / 4) ** (1 / 4)
    assert corpus_bleu([list("abcd"), list("ex")], [list("abcd"), list("ef")]) == pytest.approx(expected)


def test_bleu_takes_tokens_as_they_are():
    assert corpus_bleu([["don't", "go", "!!", "now"]], [["don't", "go", "!!", "now"]]) == pytest.approx(100)
    # tokenised again, "!!" would become two tokens and share one with "!"
    apart = corpus_bleu([["a", "b", "c", "d", "!!"]], [["a", "b", "c", "d", "!"]])
    assert apart == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4))


def test_bleu_bears_empty_hypotheses():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert corpus_bleu([""], ["春雨山雪"]) == 0.0


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


LOGITS = np.random.default_rng(1).normal(0.0, 2.0, (2, 3, 5)).astype("float32")  # [B, T, V]
LABELS = np.array([[4, 1, 2], [3, 0, 0]])
MASK = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]], dtype="float32")
SMOOTHINGS = pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])


def log_softmax(logits):
    logits = logits.astype("float64")
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def by_hand(logits, labels, mask, smoothing):
    """Return the loss, and the plain negative log-likelihoods [B, T]: cross-entropy against a mixed distribution."""
    log_p = log_softmax(logits)
    one_hot = np.eye(logits.shape[-1])[labels]
    mixed = (1.0 - smoothing) * one_hot + smoothing / logits.shape[-1]
    losses = -(mixed * log_p).sum(axis=-1)
    return float((losses * mask).sum() / mask.sum()), -(one_hot * log_p).sum(axis=-1) * mask


def run(smoothing, logits, labels, mask):
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
