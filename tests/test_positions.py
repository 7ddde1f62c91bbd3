"""Position vectors: values computed by hand, offsets, limits, what is saved."""

import math
from collections.abc import Callable

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_dialog.layers.positions import LearnedPositions, SinusoidalPositions, sinusoidal_table


def test_sinusoidal_values_by_hand() -> None:
    table = sinusoidal_table(3, 4)  # frequencies 1 and 1 / 10000^(2/4) = 0.01
    assert table.dtype == paddle.float32
    by_hand = [
        [0.0, 1.0, 0.0, 1.0],
        [0.8414710, 0.5403023, 0.0099998, 0.9999500],
        [0.9092974, -0.4161468, 0.0199987, 0.9998000],
    ]
    np.testing.assert_allclose(table.numpy(), by_hand, atol=1e-6)


def test_sinusoidal_dot_product_depends_on_distance_only() -> None:
    table = sinusoidal_table(50, 16).numpy().astype("float64")
    products = table @ table.T
    for distance in (0, 1, 7):
        np.testing.assert_allclose(np.diagonal(products, distance), products[0, distance], atol=1e-4)


def test_odd_size_ends_with_a_sine() -> None:
    table = sinusoidal_table(2, 3).numpy()
    assert table.shape == (2, 3)
    np.testing.assert_allclose(table[1, 2], math.sin(10000 ** (-2 / 3)), atol=1e-7)


@pytest.mark.parametrize("make", [lambda: SinusoidalPositions(6, 10), lambda: LearnedPositions(10, 6)])
def test_offset_continues_the_sequence(make: Callable[[], nn.Layer]) -> None:
    positions = make()
    whole = positions(10).numpy()
    assert whole.shape == (1, 10, 6)
    np.testing.assert_array_equal(positions(3, offset=4).numpy(), whole[:, 4:7])
    assert len(np.unique(whole[0], axis=0)) == 10


@pytest.mark.parametrize("make", [lambda: SinusoidalPositions(6, 10), lambda: LearnedPositions(10, 6)])
@pytest.mark.parametrize(("length", "offset", "named"), [(11, 0, "11"), (3, 8, "11"), (1, -1, "-1")])
def test_too_long_names_both_lengths(
    make: Callable[[], nn.Layer], length: int, offset: int, named: str
) -> None:
    with pytest.raises(ValueError, match="10") as error:
        make()(length, offset)
    assert named in str(error.value)


def test_sinusoidal_has_nothing_to_train_or_save() -> None:
    positions = SinusoidalPositions(6, 10)
    assert positions.parameters() == []
    assert positions.state_dict() == {}


def test_learned_positions_are_one_parameter_that_gets_gradients() -> None:
    positions = LearnedPositions(10, 6)
    assert [p.shape for p in positions.parameters()] == [[10, 6]]
    positions(2, offset=3).sum().backward()
    gradient = positions.weight.grad.numpy()
    assert gradient.sum(axis=1).tolist() == [0, 0, 0, 6, 6, 0, 0, 0, 0, 0]
