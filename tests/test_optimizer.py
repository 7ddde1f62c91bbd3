"""Schedules by hand, steps of the optimiser, and which parameters decay."""

import math

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paddle import nn

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.errors import UserError
from paddle_dialog.training.optimizer import (
    build_optimizer,
    clip_gradients,
    hidden_matrices,
    learning_rate_factor,
    orthogonalised,
)

HALF = math.sqrt(0.5) / 2
# Of the Transformer paper's equation 3, at width 512 and 4,000 warm-up steps.
PEAK = 1 / math.sqrt(512 * 4000)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"schedule": "constant"}, {0: 1.0, 50: 1.0, 99: 1.0}),
        ({"schedule": "constant", "warmup_steps": 4}, {0: 0.25, 1: 0.5, 3: 1.0, 4: 1.0, 50: 1.0}),
        ({"schedule": "cosine"}, {0: 1.0, 25: 0.5 + HALF, 50: 0.5, 75: 0.5 - HALF, 100: 0.0, 130: 0.0}),
        ({"schedule": "cosine", "final_rate": 0.1}, {0: 1.0, 50: 0.55, 100: 0.1}),
        ({"schedule": "cosine", "warmup_steps": 20}, {0: 0.05, 9: 0.5, 19: 1.0, 20: 1.0, 60: 0.5, 100: 0.0}),
        ({"schedule": "cosine", "warmup_steps": 110}, {0: 1 / 110, 109: 1.0, 110: 1.0, 111: 0.0}),
        (
            {"schedule": "noam", "warmup_steps": 4000},
            {0: PEAK / 4000, 1999: PEAK / 2, 3999: PEAK, 15999: PEAK / 2},
        ),
    ],
)
def test_schedules(settings, expected):
    """Of a run of 101 steps: 100 is the last one."""
    factor = learning_rate_factor(TrainingConfig(**settings), 101, 512)
    assert [factor(step) for step in expected] == pytest.approx(list(expected.values()))


def test_the_optimiser_multiplies_its_rate_by_the_schedule():
    config = TrainingConfig(schedule="constant", warmup_steps=4, learning_rate=0.2)
    optimizer, schedule = build_optimizer(config, nn.Linear(2, 2), 10, 8)
    rates = []
    for _ in range(5):
        rates.append(optimizer.get_lr())
        schedule.step()
    assert rates == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.2])


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_step_is_that_of_paddles_optimiser(name):
    settings = {"learning_rate": 0.1, "beta2": 0.9, "epsilon": 1e-3}
    ours, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
    theirs.set_state_dict(ours.state_dict())
    config = TrainingConfig(optimizer=name, **settings)
    optimizer, _ = build_optimizer(config, ours, 10, 8)
    plain = {"adam": paddle.optimizer.Adam, "adamw": paddle.optimizer.AdamW}[name]
    extra = {"weight_decay": 0.0} if name == "adamw" else {}
    reference = plain(0.1, 0.9, 0.9, 1e-3, parameters=theirs.parameters(), **extra)
    x = paddle.to_tensor([[1.0, 2.0, 3.0]])
    for _ in range(3):
        for network, stepper in ((ours, optimizer), (theirs, reference)):
            (network(x) ** 2 * 50.0).sum().backward()
            stepper.step()
            stepper.clear_grad()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


def test_only_matrices_decay():
    """With zero gradients AdamW leaves exactly the decay: w · (1 - rate · decay)."""
    network = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.LayerNorm(4), nn.LSTM(4, 3))
    for parameter in network.parameters():
        parameter.set_value(paddle.ones_like(parameter))
        parameter.grad = paddle.zeros_like(parameter)
    config = TrainingConfig(optimizer="adamw", learning_rate=0.1, weight_decay=0.5)
    optimizer, _ = build_optimizer(config, network, 10, 8)
    optimizer.step()
    seen = set()
    for name, parameter in network.named_parameters():
        expected = 0.95 if parameter.ndim > 1 else 1.0
        np.testing.assert_allclose(parameter.numpy(), expected, rtol=1e-6, err_msg=name)
        seen.add(expected)
    assert seen == {0.95, 1.0}


def test_frozen_parameters_are_left_out():
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    network[0].weight.trainable = False
    optimizer, _ = build_optimizer(TrainingConfig(), network, 10, 8)
    held = {parameter.name for parameter in optimizer._parameter_list}
    assert network[0].weight.name not in held
    assert len(held) == 3


@pytest.mark.parametrize(("clip_norm", "scale"), [(2.5, 0.5), (10.0, 1.0), (None, 1.0)])
def test_gradients_are_clipped_by_their_global_norm(clip_norm, scale):
    """(3, 4) has norm 5."""
    parameters = nn.Linear(1, 1).parameters()
    for parameter, value in zip(parameters, (3.0, 4.0), strict=True):
        parameter.grad = paddle.full_like(parameter, value)
    assert clip_gradients(parameters, clip_norm) == pytest.approx(5.0)
    assert [p.grad.item() for p in parameters] == pytest.approx([3.0 * scale, 4.0 * scale])


RATE, DECAY = 0.01, 0.1


class Small(nn.Layer):
    """A table, a wide and a tall hidden matrix, a norm, and an output layer as wide as the table has rows.

    Beside them learned positions, as many as the model is wide, and a head of one number.
    """

    def __init__(self):
        super().__init__()
        self.table, self.wide, self.tall = nn.Embedding(9, 4), nn.Linear(4, 6), nn.Linear(6, 5)
        self.norm, self.output = nn.LayerNorm(5), nn.Linear(5, 9)
        self.positions, self.head = nn.Embedding(4, 4), nn.Linear(4, 1)

    def forward(self, ids):
        return self.output(self.norm(self.tall(self.wide(self.table(ids))))).square().mean()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
def test_all_directions_of_a_matrix_become_alike(rows, columns, seed):
    matrix = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
    u, sizes, v = np.linalg.svd(matrix, full_matrices=False)
    found = np.diag(u.T @ orthogonalised(paddle.to_tensor(matrix)).numpy() @ v.T)
    well_conditioned = sizes > 0.05 * sizes.max()
    assert np.all((found[well_conditioned] > 0.6) & (found[well_conditioned] < 1.3))


def test_hidden_matrices_are_neither_tables_nor_output_layers_nor_vectors():
    network = Small()
    assert hidden_matrices(network) == {network.wide.weight.name, network.tall.weight.name}
    with pytest.raises(UserError, match="take adamw"):
        build_optimizer(TrainingConfig(optimizer="muon"), nn.Sequential(nn.Embedding(3, 2)), 9, 4)


def test_two_steps_are_those_worked_out_in_numpy_and_the_rest_is_adamw():
    paddle.seed(1)
    ours, theirs = Small(), Small()
    theirs.set_state_dict(ours.state_dict())
    settings = {"learning_rate": RATE, "weight_decay": DECAY, "clip_norm": None}
    muon, _ = build_optimizer(TrainingConfig(optimizer="muon", **settings), ours, 9, 4)
    adam, _ = build_optimizer(TrainingConfig(optimizer="adamw", **settings), theirs, 9, 4)
    hidden = ("wide.weight", "tall.weight")
    expected = {name: ours.state_dict()[name].numpy() for name in hidden}
    mean = {name: np.zeros_like(weight) for name, weight in expected.items()}
    for _ in range(2):
        for name in hidden:
            theirs.state_dict()[name].set_value(ours.state_dict()[name])
        for network in (ours, theirs):
            network(paddle.to_tensor([1, 4, 8])).backward()
        for name in hidden:
            gradient = ours.state_dict()[name].grad.numpy()
            mean[name] = 0.95 * mean[name] + 0.05 * gradient
            update = orthogonalised(paddle.to_tensor(0.95 * mean[name] + 0.05 * gradient)).numpy()
            step = RATE * 0.2 * np.sqrt(6) * update  # 6 is the longer side of both
            expected[name] = expected[name] * (1 - RATE * DECAY) - step
        for optimizer in (muon, adam):
            optimizer.step()
            optimizer.clear_grad()
        for name, weight in theirs.state_dict().items():
            found = ours.state_dict()[name].numpy()
            if name in hidden:
                np.testing.assert_allclose(found, expected[name], atol=1e-6)
            else:
                np.testing.assert_array_equal(found, weight.numpy(), err_msg=name)
