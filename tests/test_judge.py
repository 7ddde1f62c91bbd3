"""Judges: their file and fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from paddle_dialog.errors import UserError
from paddle_dialog.judge import Judge
from tools.weights.judges import SCORE_SCALE, fit_order


def test_a_judge_keeps_its_weights_in_a_file_and_refuses_another_width() -> None:
    judge = Judge(np.array([1.0, -2.0]))
    states = np.array([[3.0, 1.0], [0.0, 1.0]])
    again = Judge.from_bytes(judge.to_bytes(), 2)
    assert again(states).tolist() == judge(states).tolist() == [1.0, -2.0]
    with pytest.raises(UserError, match="reads 2 numbers of a text, and this model has 3"):
        Judge.from_bytes(judge.to_bytes(), 3)
    with pytest.raises(UserError, match="holds no judge"):
        Judge.from_bytes(b"no", 3)


def test_the_fit_is_ridge_regression_within_each_input() -> None:
    random = np.random.default_rng(1)
    inputs = random.permutation(np.repeat(np.arange(80) * 7, 5))
    rows = random.normal(size=(400, 5)) * [1, 10, 0.1, 3, 0] + 2
    easy = random.normal(size=600) * 20  # some inputs are easy to answer well, which must not matter
    values = rows @ [0.5, -0.1, 3, 0, 0] + easy[inputs] + random.normal(size=400) * 0.1
    scaled = rows / [*rows.std(0)[:4], 1] * [SCORE_SCALE, SCORE_SCALE, 1, 1, 1]
    means = np.stack([scaled[inputs == one].mean(0) for one in inputs])
    goals = values - [values[inputs == one].mean() for one in inputs]
    expected = Ridge(alpha=30, fit_intercept=False).fit(scaled - means, goals).coef_
    found = fit_order(rows, values, inputs, 2, 30)
    spared = np.array([SCORE_SCALE, SCORE_SCALE, 1, 1])
    np.testing.assert_allclose(found[:4], expected[:4] * spared / rows.std(0)[:4], rtol=1e-6)
    assert found[4] == 0
    np.testing.assert_allclose(found[:3], [0.5, -0.1, 3], rtol=0.2)
