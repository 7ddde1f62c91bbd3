"""The sum of the two classifiers of reviews, and how each is fitted, by hand."""

import math

import numpy as np
import paddle
import pytest

from paddle_dialog.config.models import LstmAttentionConfig
from tasks.sentiment.config import LinearConfig, SentimentConfig, SentimentDataConfig
from tasks.sentiment.data import ALWAYS
from tasks.sentiment.linear import fit_linear
from tasks.sentiment.network import SentimentLoss, SentimentNetwork


def network(**sections):
    paddle.seed(1)
    model = LstmAttentionConfig(embedding_size=4, hidden_size=4, num_layers=1, dropout=0.0)
    return SentimentNetwork(SentimentConfig(task="sentiment", model=model, **sections), 9)


def own_logit(net, ids):
    return net(paddle.to_tensor([ids]), paddle.to_tensor([3]), paddle.to_tensor([[1]]))[1].item()


def test_the_linear_logits_are_those_of_the_shares_in_the_data():
    draws = np.random.default_rng(1)
    kind, right = draws.integers(2, size=5000), draws.random(5000) < 0.8
    labels = np.where(right, kind, 1 - kind)  # four of five reviews are what their word says
    table = fit_linear([np.array([ALWAYS, 2 + one]) for one in kind], labels, 4, 1e-3)
    assert table[ALWAYS] + table[3] == pytest.approx(math.log(4), abs=0.3)
    assert table[ALWAYS] + table[2] == pytest.approx(-math.log(4), abs=0.3)


def test_what_every_review_has_carries_the_share_of_good_ones():
    labels = (np.random.default_rng(1).random(5000) < 0.8).astype(int)
    table = fit_linear([np.array([ALWAYS])] * 5000, labels, 4, 1.0)
    assert table[ALWAYS] == pytest.approx(math.log(4), abs=0.2)


def test_the_answer_is_the_linear_sum_and_a_share_of_the_network():
    net = network(linear=LinearConfig(buckets=8, network_share=0.3))
    net.eval()
    net.linear_table.set_value(paddle.arange(8, dtype="float32").unsqueeze(1))
    scores, own = net(paddle.to_tensor([[4, 5, 6]]), paddle.to_tensor([3]), paddle.to_tensor([[1, 5, 0]]))
    assert float(scores[0, 1]) == pytest.approx(0.3 * float(own[0]) + 1 + 5, rel=1e-5)


def test_words_become_unknown_in_training_alone():
    net = network(data=SentimentDataConfig(unknown_rate=1.0))
    assert own_logit(net, [4, 5, 6]) == own_logit(net, [7, 8, 4])
    net.eval()
    assert own_logit(net, [4, 5, 6]) != own_logit(net, [7, 8, 4])


def test_the_loss_is_the_mean_by_the_weights_of_the_reviews():
    own = paddle.to_tensor([0.0, 2.0])
    loss = SentimentLoss()(own, own, paddle.to_tensor([1, 0]), paddle.to_tensor([1.0, 0.1]))
    expected = (math.log(2) + 0.1 * math.log1p(math.exp(2.0))) / 1.1
    assert loss.item() == pytest.approx(expected, rel=1e-5)
