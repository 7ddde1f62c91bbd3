"""Embeddings of tokens and positions, and the tied output layer."""

import math

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_dialog.layers.embeddings import SinusoidalPositions, TiedProjection, TokenEmbedding
from paddle_dialog.layers.sinusoids import sinusoids


class TiedModel(nn.Layer):
    """An embedding and the output layer that shares its table."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(7, 4)
        self.projection = TiedProjection(self.embedding, bias)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.projection(self.embedding(ids))


def test_initial_vectors_have_deviation_one_over_root_size() -> None:
    paddle.seed(5)
    table = TokenEmbedding(2000, 64).weight.numpy()
    assert (table[0] == 0).all()
    np.testing.assert_allclose(table[1:].std(), 1 / 8, rtol=0.02)
    np.testing.assert_allclose(table[1:].mean(), 0, atol=2e-3)


def test_scale_multiplies_by_root_size() -> None:
    embedding = TokenEmbedding(5, 9, scale=True)
    vectors = embedding(paddle.to_tensor([[1, 2], [3, 0]]))
    assert vectors.shape == [2, 2, 9]
    np.testing.assert_allclose(vectors.numpy()[0, 1], embedding.weight.numpy()[2] * 3.0, rtol=1e-6)


def test_padding_gets_no_gradient() -> None:
    embedding = TokenEmbedding(5, 3)
    vectors = embedding(paddle.to_tensor([[1, 0, 0]]))
    assert (vectors.numpy()[0, 1:] == 0).all()
    vectors.sum().backward()
    assert embedding.weight.grad.numpy().sum(axis=1).tolist() == [0, 3, 0, 0, 0]


@pytest.mark.parametrize("bias", [True, False])
def test_tied_projection_owns_only_its_bias(bias: bool) -> None:
    model = TiedModel(bias)
    assert sum(math.prod(p.shape) for p in model.parameters()) == 7 * 4 + 7 * bias
    assert sorted(model.state_dict()) == ["embedding.table.weight", *["projection.bias"] * bias]


def test_tied_logits_are_products_with_the_table() -> None:
    model = TiedModel(bias=True)
    model.projection.bias.set_value(paddle.arange(7, dtype="float32"))
    table = model.embedding.weight.numpy()
    ids = np.array([[3, 1], [2, 6]])
    logits = model(paddle.to_tensor(ids)).numpy()
    assert logits.shape == (2, 2, 7)
    np.testing.assert_allclose(logits, table[ids] @ table.T + np.arange(7), atol=1e-5)


def test_tied_weight_gets_gradients_from_both_ends_and_follows_loading() -> None:
    model, other = TiedModel(bias=True), TiedModel(bias=True)
    ids = paddle.to_tensor([[1]])
    model(ids).sum().backward()
    table = model.embedding.weight.numpy()
    expected = np.tile(table[1], (7, 1))  # from the projection: the feature, for every token
    expected[1] += table.sum(axis=0)  # from the lookup of token 1
    np.testing.assert_allclose(model.embedding.weight.grad.numpy(), expected, atol=1e-5)
    other.set_state_dict(model.state_dict())
    np.testing.assert_array_equal(other(ids).numpy(), model(ids).numpy())


def test_sinusoidal_values_by_hand() -> None:
    table = sinusoids(max_length=3, width=4)  # frequencies 1 and 1 / 10000^(2/4) = 0.01
    assert table.dtype == np.float32
    by_hand = [
        [0.0, 1.0, 0.0, 1.0],
        [0.8414710, 0.5403023, 0.0099998, 0.9999500],
        [0.9092974, -0.4161468, 0.0199987, 0.9998000],
    ]
    np.testing.assert_allclose(table, by_hand, atol=1e-6)


def test_sinusoidal_dot_product_depends_on_distance_only() -> None:
    table = sinusoids(max_length=50, width=16).astype("float64")
    products = table @ table.T
    for distance in (0, 1, 7):
        np.testing.assert_allclose(np.diagonal(products, distance), products[0, distance], atol=1e-4)


def test_odd_size_ends_with_a_sine() -> None:
    table = sinusoids(max_length=2, width=3)
    assert table.shape == (2, 3)
    np.testing.assert_allclose(table[1, 2], math.sin(10000 ** (-2 / 3)), atol=1e-7)


def test_offset_continues_the_sequence() -> None:
    positions = SinusoidalPositions(max_length=10, width=6)
    whole = positions(10).numpy()
    assert whole.shape == (1, 10, 6)
    np.testing.assert_array_equal(positions(3, offset=4).numpy(), whole[:, 4:7])
    assert len(np.unique(whole[0], axis=0)) == 10


@pytest.mark.parametrize(("length", "offset", "named"), [(11, 0, "11"), (3, 8, "11"), (1, -1, "-1")])
def test_too_long_names_both_lengths(length: int, offset: int, named: str) -> None:
    with pytest.raises(ValueError, match="10") as error:
        SinusoidalPositions(max_length=10, width=6)(length, offset)
    assert named in str(error.value)


def test_sinusoidal_has_nothing_to_train_or_save() -> None:
    positions = SinusoidalPositions(max_length=10, width=6)
    assert positions.parameters() == []
    assert positions.state_dict() == {}
