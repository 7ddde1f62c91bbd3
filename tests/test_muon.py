"""Muon: orthogonalised updates of hidden matrices, AdamW for the rest."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paddle import nn

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.errors import UserError
from paddle_dialog.training.optimizer import build_optimizer, hidden_matrices, orthogonalised

RATE, DECAY = 0.01, 0.1


class Small(nn.Layer):
    """A table, a hidden matrix, a norm, and an output layer as wide as the table has rows."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.hidden = nn.Embedding(9, 4), nn.Linear(4, 6)
        self.norm, self.output = nn.LayerNorm(6), nn.Linear(6, 9)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.output(self.norm(self.hidden(self.table(ids)))).square().mean()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
def test_all_directions_of_a_matrix_become_alike(rows: int, columns: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
    u, sizes, v = np.linalg.svd(matrix, full_matrices=False)
    found = np.diag(u.T @ orthogonalised(paddle.to_tensor(matrix)).numpy() @ v.T)
    well_conditioned = sizes > 0.05 * sizes.max()
    assert np.all((found[well_conditioned] > 0.6) & (found[well_conditioned] < 1.3))


def test_hidden_matrices_are_neither_tables_nor_output_layers_nor_vectors() -> None:
    network = Small()
    assert hidden_matrices(network) == {network.hidden.weight.name}


class Placed(Small):
    """The same with learned positions, as many as the model is wide, and a head of one number."""

    def __init__(self) -> None:
        super().__init__()
        self.positions, self.head = nn.Embedding(4, 4), nn.Linear(4, 1)


def test_positions_are_a_table_and_do_not_tell_output_layers() -> None:
    network = Placed()
    assert hidden_matrices(network) == {network.hidden.weight.name}


def test_a_network_without_hidden_matrices_is_refused() -> None:
    with pytest.raises(UserError, match="take adamw"):
        build_optimizer(TrainingConfig(optimizer="muon"), nn.Sequential(nn.Embedding(3, 2)), 9, 4)


def test_two_steps_are_those_worked_out_in_numpy_and_the_rest_is_adamw() -> None:
    paddle.seed(1)
    ours, theirs = Small(), Small()
    theirs.set_state_dict(ours.state_dict())
    settings = {"learning_rate": RATE, "weight_decay": DECAY, "clip_norm": None}
    muon, _ = build_optimizer(TrainingConfig(optimizer="muon", **settings), ours, 9, 4)
    adam, _ = build_optimizer(TrainingConfig(optimizer="adamw", **settings), theirs, 9, 4)
    expected, mean = ours.hidden.weight.numpy(), np.zeros((4, 6), np.float32)
    for _ in range(2):
        theirs.hidden.weight.set_value(ours.hidden.weight)
        for network in (ours, theirs):
            network(paddle.to_tensor([1, 4, 8])).backward()
        gradient = ours.hidden.weight.grad.numpy()
        mean = 0.95 * mean + 0.05 * gradient
        update = orthogonalised(paddle.to_tensor(0.95 * mean + 0.05 * gradient)).numpy()
        expected = expected * (1 - RATE * DECAY) - RATE * 0.2 * np.sqrt(6) * update
        for optimizer in (muon, adam):
            optimizer.step()
            optimizer.clear_grad()
        np.testing.assert_allclose(ours.hidden.weight.numpy(), expected, atol=1e-6)
        for name, weight in theirs.state_dict().items():
            if name != "hidden.weight":
                np.testing.assert_array_equal(ours.state_dict()[name].numpy(), weight.numpy(), err_msg=name)
