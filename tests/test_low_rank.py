"""A change of weights, packed and added again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.low_rank import change_to_bytes, changed
from paddle_dialog.errors import UserError


def weights(seed: int) -> dict[str, np.ndarray]:
    draws = np.random.default_rng(seed)
    return {
        "table": draws.normal(size=(7, 4)).astype(np.float32),
        "bias": draws.normal(size=3).astype(np.float16),
    }


@settings(max_examples=30)
@given(seed=st.integers(0, 99), rank=st.integers(1, 4), row=st.integers(0, 6))
def test_a_change_of_that_rank_comes_back_whole(seed: int, rank: int, row: int) -> None:
    before, draws = weights(seed), np.random.default_rng(seed + 1)
    change = draws.normal(size=(7, rank)) @ draws.normal(size=(rank, 4))
    after = {"table": before["table"] + change.astype(np.float32), "bias": before["bias"] + np.float16(0.5)}
    found = changed(before, change_to_bytes(before, after, rank), "reward")
    assert found["table"] == pytest.approx(after["table"], abs=0.02)  # half precision
    assert found["bias"] == pytest.approx(after["bias"].astype(np.float32), abs=1e-3)


def test_the_largest_part_of_a_greater_change_is_kept() -> None:
    before = {"table": np.zeros((2, 2), np.float32)}
    after = {"table": np.diag([3.0, 1.0]).astype(np.float32)}
    found = changed(before, change_to_bytes(before, after, 1), "reward")
    assert found["table"] == pytest.approx(np.diag([3.0, 0.0]), abs=2e-3)


def test_what_belongs_to_other_weights_is_refused() -> None:
    before, other = weights(1), {"table": np.zeros((2, 2), np.float32)}
    with pytest.raises(ValueError, match="two different models"):
        change_to_bytes(before, other, 2)
    content = change_to_bytes(before, weights(2), 2)
    for odd in (
        {**before, "more": before["bias"]},
        {"table": before["table"]},
        {**before, "table": np.zeros((9, 4))},
    ):
        with pytest.raises(UserError, match="reward: holds no change of these weights"):
            changed(odd, content, "reward")
    with pytest.raises(UserError, match="reward: holds no change"):
        changed(before, b"nothing", "reward")
