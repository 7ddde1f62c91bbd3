"""The judge: its values, its file, and the fits to ratings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, SCORE_SCALE, Judge, fit_order, judge_of_bundle


def test_a_judge_keeps_its_weights_in_a_file_and_refuses_another_width() -> None:
    judge = Judge(np.array([1.0, -2.0]))
    states = np.array([[3.0, 1.0], [0.0, 1.0]])
    again = Judge.from_bytes(judge.to_bytes(), 2)
    assert again(states).tolist() == judge(states).tolist() == [1.0, -2.0]
    with pytest.raises(UserError, match="reads 2 numbers of a text, and this model has 3"):
        Judge.from_bytes(judge.to_bytes(), 3)
    with pytest.raises(UserError, match="holds no judge"):
        Judge.from_bytes(b"no", 3)


def test_a_bundle_without_a_judge_says_so_once_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "paddle_dialog")
    assert judge_of_bundle(b"no judge at all", 2, 0.0) is None and judge_of_bundle(None, 2, 0.0) is None
    assert not caplog.messages
    assert judge_of_bundle(None, 2, 1.0) is None
    assert JUDGE in caplog.messages[0]
    judge = judge_of_bundle(Judge(np.ones(2)).to_bytes(), 2, 0.5)
    assert judge is not None and judge(np.eye(2)).tolist() == [1, 1]


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


def test_texts_that_count_nothing_change_nothing() -> None:
    random = np.random.default_rng(3)
    rows, inputs = random.normal(size=(60, 2)), np.repeat(np.arange(12), 5)
    values = rows @ [1.0, -1.0]
    wrong = np.where(np.arange(60) < 30, -values, values)
    counts = (np.arange(60) >= 30).astype(float) + 1e-9
    found = fit_order(rows, wrong, inputs, 0, 1e-6, counts)
    np.testing.assert_allclose(found, [1.0, -1.0], rtol=1e-3)
