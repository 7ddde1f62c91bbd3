"""Position vectors: values computed by hand, offsets, limits, what is saved."""

import math

import numpy as np
import pytest

from paddle_dialog.layers.positions import LearnedPositions, SinusoidalPositions
from paddle_dialog.layers.sinusoids import sinusoids

Kind = SinusoidalPositions | LearnedPositions
KINDS = pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])


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


@KINDS
def test_offset_continues_the_sequence(kind: type[Kind]) -> None:
    positions = kind(max_length=10, width=6)
    whole = positions(10).numpy()
    assert whole.shape == (1, 10, 6)
    np.testing.assert_array_equal(positions(3, offset=4).numpy(), whole[:, 4:7])
    assert len(np.unique(whole[0], axis=0)) == 10


@KINDS
@pytest.mark.parametrize(("length", "offset", "named"), [(11, 0, "11"), (3, 8, "11"), (1, -1, "-1")])
def test_too_long_names_both_lengths(kind: type[Kind], length: int, offset: int, named: str) -> None:
    with pytest.raises(ValueError, match="10") as error:
        kind(max_length=10, width=6)(length, offset)
    assert named in str(error.value)


def test_sinusoidal_has_nothing_to_train_or_save() -> None:
    positions = SinusoidalPositions(max_length=10, width=6)
    assert positions.parameters() == []
    assert positions.state_dict() == {}


def test_learned_positions_are_one_parameter_that_gets_gradients() -> None:
    positions = LearnedPositions(max_length=10, width=6)
    assert [p.shape for p in positions.parameters()] == [[10, 6]]
    positions(2, offset=3).sum().backward()
    gradient = positions.weight.grad.numpy()
    assert gradient.sum(axis=1).tolist() == [0, 0, 0, 6, 6, 0, 0, 0, 0, 0]
