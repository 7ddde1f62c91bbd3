import math

import numpy as np
import paddle
import pytest
from paddle import nn
from paddlenlp.metrics import Perplexity

from paddle_dialog.metrics.perplexity import perplexity_per_example, token_perplexity, token_perplexity_metric
from paddle_dialog.training.losses import SequenceCrossEntropy

VOCABULARY, STEPS = 11, 5


def test_token_perplexity_by_hand():
    # probabilities 1/2, 1/4, 1/8: the geometric mean is 1/4
    assert token_perplexity(math.log(2) + math.log(4) + math.log(8), 3) == pytest.approx(4)
    assert token_perplexity(0.0, 7) == 1.0
    assert token_perplexity(1e6, 1) == math.inf
    with pytest.raises(ValueError, match="not 0"):
        token_perplexity(1.0, 0)


def test_perplexity_per_example_by_hand():
    # one token at 1/2, three at 1/8: the mean of log 2 and log 8 is log 4; over tokens it is log 2**2.5
    nll, tokens = [math.log(2), 3 * math.log(8)], [1, 3]
    assert perplexity_per_example(nll, tokens) == pytest.approx(4)
    assert token_perplexity(sum(nll), sum(tokens)) == pytest.approx(2**2.5)


@pytest.mark.parametrize(("nll", "tokens"), [([], []), ([1.0], [0]), ([1.0, 2.0], [1])])
def test_perplexity_per_example_refuses_what_has_no_mean(nll, tokens):
    with pytest.raises(ValueError, match=r"perplexity needs|zip\(\)"):
        perplexity_per_example(nll, tokens)


class Examples(paddle.io.Dataset):
    """Random sequences of 1 to STEPS real tokens."""

    def __init__(self, count: int = 10) -> None:
        random = np.random.default_rng(3)
        self.inputs = random.integers(0, VOCABULARY, (count, STEPS))
        self.labels = random.integers(0, VOCABULARY, (count, STEPS))
        lengths = random.integers(1, STEPS + 1, count)
        self.masks = (np.arange(STEPS) < lengths[:, None]).astype("float32")

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.labels[index], self.masks[index]


def tiny_model(learning_rate=0.5, label_smoothing=0.0):
    """Returns a prepared `paddle.Model` of one table of logits, with our metric beside PaddleNLP's."""
    paddle.seed(5)
    network = nn.Embedding(VOCABULARY, VOCABULARY)
    model = paddle.Model(
        network,
        inputs=[paddle.static.InputSpec([None, STEPS], "int64", "inputs")],
        labels=[
            paddle.static.InputSpec([None, STEPS], "int64", "label"),
            paddle.static.InputSpec([None, STEPS], "float32", "mask"),
        ],
    )
    criterion = SequenceCrossEntropy(label_smoothing)
    optimizer = paddle.optimizer.SGD(learning_rate, parameters=network.parameters())
    model.prepare(optimizer, criterion, [token_perplexity_metric(criterion), Perplexity(name="PaddleNLP")])
    return model


class Logs(paddle.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.train = []

    def on_train_batch_end(self, step, logs=None):
        self.train.append((logs["Perplexity"], logs["PaddleNLP"]))


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_fit_reports_what_paddlenlp_reports(label_smoothing):
    logs = Logs()
    model = tiny_model(label_smoothing=label_smoothing)
    model.fit(Examples(), batch_size=4, epochs=2, shuffle=False, verbose=0, callbacks=[logs])
    ours, theirs = np.array(logs.train).T
    assert len(ours) == 6
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert len(set(ours.round(6))) == 6  # the figure moves with every batch


def test_evaluate_agrees_with_paddlenlp_and_numpy():
    data, model = Examples(), tiny_model()
    result = model.evaluate(data, batch_size=4, verbose=0)
    logits = model.network.weight.numpy().astype("float64")[data.inputs]  # [10, T, V]
    log_probability = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))  # [10, T, V]
    nll = (
        -np.take_along_axis(log_probability, data.labels[..., None], axis=-1)[..., 0] * data.masks
    )  # [10, T]
    by_hand = np.exp(nll.sum() / data.masks.sum())
    assert result["Perplexity"] == pytest.approx(by_hand, rel=1e-5)
    assert result["Perplexity"] == pytest.approx(result["PaddleNLP"], rel=1e-5)
    assert token_perplexity(nll.sum(), int(data.masks.sum())) == pytest.approx(by_hand)


def test_metric_is_a_paddlenlp_perplexity_that_needs_no_logits():
    criterion = SequenceCrossEntropy()
    metric = token_perplexity_metric(criterion)
    assert isinstance(metric, Perplexity)
    assert metric.name() == "Perplexity"
    label, mask = paddle.zeros([1, 2], "int64"), paddle.ones([1, 2])
    criterion(paddle.zeros([1, 2, VOCABULARY]), label, mask)
    nll, tokens = metric.compute(None, label, mask)  # uniform logits: the perplexity is the vocabulary
    metric.update(nll.numpy(), tokens.numpy())
    assert metric.accumulate() == pytest.approx(VOCABULARY, rel=1e-6)


def test_metric_reads_label_and_mask_last_whatever_else_a_task_returns():
    criterion = SequenceCrossEntropy()
    metric = token_perplexity_metric(criterion)
    label, mask = paddle.zeros([2, 3], "int64"), paddle.to_tensor([[1.0, 1, 1], [1, 0, 0]])
    criterion(paddle.zeros([2, 3, VOCABULARY]), label, mask)
    nll, tokens = metric.compute(None, paddle.ones([2, 32]), paddle.zeros([2], "int64"), label, mask)
    assert (nll.shape, int(tokens)) == ([2, 3], 4)


def test_metric_refuses_another_criterion():
    metric = token_perplexity_metric(SequenceCrossEntropy())
    label, mask = paddle.zeros([1, 2], "int64"), paddle.ones([1, 2])
    with pytest.raises(RuntimeError, match=r"shape None for labels \[1, 2\]"):
        metric.compute(None, label, mask)


def test_metric_adds_up_in_double_precision():
    metric = token_perplexity_metric(SequenceCrossEntropy())
    metric.update(np.full(1, 2.0**25, dtype="float32"), np.array(2.0**25))
    for _ in range(4):
        metric.update(np.ones(1, dtype="float32"), np.array(0.0))
    assert metric.total_ce == 2.0**25 + 4
