"""Products over arrays in blocks of columns, and rows in a grid beside those of their source."""

import sys
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from paddle_dialog.models.numpy_pointer_generator import WORDS_AT_ONCE, label_log_softmax
from paddle_dialog.models.numpy_state import RowSources

from paddle_dialog.models.numpy_operators import COLUMNS, SMALL, NumpyLinear


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 70),
    inputs=st.sampled_from([1, 7, 300]),
    outputs=st.sampled_from([1, 63, 64, 65, 200]),
    avx512=st.booleans(),
)
def test_blocks_of_columns_make_the_same_product(rows: int, inputs: int, outputs: int, avx512: bool) -> None:
    assert 40 * 300 * COLUMNS < SMALL < 70 * 300 * COLUMNS  # one product, and several of fewer rows
    rng = np.random.default_rng(rows)
    x, weight = (rng.normal(size=size).astype(np.float32) for size in ((rows, inputs), (inputs, outputs)))
    bias = rng.normal(size=outputs).astype(np.float32)
    expected = x.astype(np.float64) @ weight + bias
    with mock.patch("paddle_dialog.models.numpy_operators.LARGEST", SMALL if avx512 else sys.maxsize):
        linear = NumpyLinear(weight, bias)
    np.testing.assert_allclose(linear(x), expected, atol=1e-3)
    np.testing.assert_allclose(linear(x.reshape(1, rows, 1, inputs))[0, :, 0], expected, atol=1e-3)


def test_a_vocabulary_of_many_parts_is_normalised_as_one() -> None:
    rng = np.random.default_rng(1)
    size = 2 * WORDS_AT_ONCE + 70
    hidden, weight = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 16), (16, size)))
    rows, labels = np.array([0, 1, 2, 2]), np.array([5, WORDS_AT_ONCE, size - 1, 0])
    logits = hidden.astype(np.float64) @ weight
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    found = label_log_softmax(NumpyLinear(weight), hidden, rows, labels, np.float32(1))
    np.testing.assert_allclose(found, expected[rows, labels], atol=1e-4)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_rows_come_back_from_the_grid_beside_those_of_their_input(inputs: list[int]) -> None:
    rows = RowSources.of(np.array(inputs), 4)
    values = np.arange(len(inputs), dtype=np.float32)[:, None] + 1
    grid = rows.spread(values)
    assert grid.shape == (4, max(map(inputs.count, inputs)), 1)
    for number in range(4):
        own = sorted(value for value in grid[number].ravel().tolist() if value)
        assert own == [place + 1 for place, owner in enumerate(inputs) if owner == number]
    np.testing.assert_array_equal(rows.collect(grid), values)
