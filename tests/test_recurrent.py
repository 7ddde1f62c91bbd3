"""The recurrent layers: scores against their formulas, and dropout; `test_network_steps.py` has the rest in NumPy."""

from dataclasses import replace

import numpy as np
import paddle
import pytest

from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.layers.recurrent import AttentionCell, RecurrentEncoder, Score

BATCH, SOURCE, WIDTH = 3, 5, 6
CONFIG = LstmAttentionConfig(embedding_size=WIDTH, hidden_size=WIDTH, dropout=0.5)


def vectors(*shape, seed):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def differs(call):
    """Return whether the first of what a call returns differs between two calls."""
    paddle.seed(3)
    first, second = (call()[0].numpy() for _ in range(2))
    return not np.array_equal(first, second)


@pytest.mark.parametrize("score", ["additive", "dot", "scaled_dot", "bilinear"])
def test_scores_equal_the_formulas(score):
    layer = Score(score, WIDTH)
    query, values = vectors(BATCH, WIDTH, seed=50), vectors(BATCH, SOURCE, WIDTH, seed=51)
    found = layer(query, layer.prepare(values)).numpy()
    w = {name: parameter.numpy() for name, parameter in layer.named_parameters()}
    for row, place in np.ndindex(BATCH, SOURCE):
        q, k = query.numpy()[row], values.numpy()[row, place]
        if score == "additive":
            hidden = np.tanh(k @ w["key_proj.weight"] + q @ w["query_proj.weight"])
            expected = (hidden @ w["score_proj.weight"])[0]
        elif score == "bilinear":
            expected = q @ (k @ w["key_proj.weight"])
        else:
            expected = q @ k / (np.sqrt(WIDTH) if score == "scaled_dot" else 1.0)
        np.testing.assert_allclose(found[row, place], expected, atol=1e-5)


@pytest.mark.parametrize(("layers", "drops"), [(1, False), (2, True)])
def test_encoder_drops_between_layers_only(layers, drops):
    encoder = RecurrentEncoder(replace(CONFIG, num_layers=layers))
    inputs = vectors(BATCH, SOURCE, WIDTH, seed=5), paddle.to_tensor([5, 2, 3])
    assert differs(lambda: encoder(*inputs)) is drops


def test_dropout_acts_on_cells_in_training_only():
    cell = AttentionCell(CONFIG)
    memory = cell.prepare_memory(vectors(BATCH, SOURCE, WIDTH, seed=80), paddle.ones([BATCH, SOURCE], "bool"))
    states = [(vectors(BATCH, WIDTH, seed=n), vectors(BATCH, WIDTH, seed=n + 9)) for n in range(2)]
    inputs = vectors(BATCH, WIDTH, seed=81), cell.initial_states(states), memory
    assert differs(lambda: cell(*inputs))
    cell.eval()
    assert not differs(lambda: cell(*inputs))
