"""Linear models: classifiers of sparse features, their optimum and scale; judges, their file and fit."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.linear_model import Ridge

from paddle_dialog.errors import UserError
from paddle_dialog.judge import Judge
from paddle_dialog.linear_classifier import LinearSettings, fit_classifier, fit_margins, fit_scale
from tools.weights.judges import SCORE_SCALE, fit_order

SETTINGS = LinearSettings(penalty=0.2, ratio_power=0.25)


def texts(count=200):
    """Return features [count, 12] and labels of three classes."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, count)
    chance = 0.3 + 0.3 * np.eye(3)[labels] @ rng.integers(0, 2, (3, 12))  # [count, 12]
    return csr_matrix((rng.random((count, 12)) < chance) / np.sqrt(6)), labels


@pytest.mark.parametrize("loss", ["squared_hinge", "log"])
def test_each_machine_minimises_its_loss_over_features_scaled_by_log_count_ratios(loss):
    features, labels = texts()
    settings = LinearSettings(0.2, loss, 0.25)
    dense, signs = features.toarray(), np.where(labels == 1, 1.0, -1.0)
    counts, ratios = (dense > 0).astype(float), []
    for label in range(3):
        inside, outside = counts[labels == label].sum(0) + 1, counts[labels != label].sum(0) + 1
        ratios.append(np.log(inside / inside.sum()) - np.log(outside / outside.sum()))
    factors = np.abs(ratios) ** 0.25
    scaled = dense * factors[1] / np.sqrt(np.mean(factors**2))

    def objective(weights):
        margins = signs * (scaled @ weights)
        losses = np.maximum(0, 1 - margins) ** 2 if loss == "squared_hinge" else np.logaddexp(0, -margins)
        return float(0.5 * weights @ weights + 0.2 * losses.sum())

    expected = scaled @ minimize(objective, np.zeros(12), tol=1e-12).x
    np.testing.assert_allclose(dense @ fit_margins(features, labels, 3, settings)[:, 1], expected, atol=0.02)


def test_the_scale_makes_held_out_texts_likeliest():
    features, labels = texts()
    held_out = np.arange(200) % 4 == 0
    margins = features[held_out] @ fit_margins(features[~held_out], labels[~held_out], 32, SETTINGS)

    def nll(scale):
        logits = scale * margins
        return float((np.log(np.exp(logits).sum(1)) - logits[np.arange(50), labels[held_out]]).mean())

    scale = fit_scale(margins, labels[held_out], SETTINGS.scales)
    assert SETTINGS.scales[0] < scale < SETTINGS.scales[1] and abs(scale - 1) > 0.1
    assert nll(scale) < min(nll(0.95 * scale), nll(1.05 * scale))
    table = fit_classifier(features, labels, held_out, 32, SETTINGS)
    expected = scale * fit_margins(features, labels, 32, SETTINGS)
    np.testing.assert_allclose(table[:, :3], expected[:, :3], rtol=1e-5)
    assert (table[:, 3:] == table[:, :3].min()).all()  # labels without a text are less likely than any other


def test_where_nothing_is_left_to_hold_out_margins_are_logits():
    features, labels = texts()
    for held_out in (labels > 0, labels > 2):  # one label is left to fit; no text is held out
        table = fit_classifier(features, labels, held_out, 3, SETTINGS)
        np.testing.assert_array_equal(table, fit_margins(features, labels, 3, SETTINGS))


def test_a_judge_keeps_its_weights_in_a_file_and_refuses_another_width():
    judge = Judge(np.array([1.0, -2.0]))
    states = np.array([[3.0, 1.0], [0.0, 1.0]])
    again = Judge.from_bytes(judge.to_bytes(), 2)
    assert again(states).tolist() == judge(states).tolist() == [1.0, -2.0]
    with pytest.raises(UserError, match="reads 2 numbers of a text, and this model has 3"):
        Judge.from_bytes(judge.to_bytes(), 3)
    with pytest.raises(UserError, match="holds no judge"):
        Judge.from_bytes(b"no", 3)


def test_the_fit_is_ridge_regression_within_each_input():
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
