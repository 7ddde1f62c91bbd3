"""Metrics of classes, and the picture of what each token speaks for."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix as by_sklearn
from sklearn.metrics import f1_score as f1_by_sklearn

from paddle_dialog.figures.charts import draw_coloured_text
from paddle_dialog.metrics.classification import calibration_error, confusion_matrix, f1_score


def test_confusion_and_f1_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(5)
    gold, predicted = generator.integers(0, 2, 200), generator.integers(0, 2, 200)
    confusion = confusion_matrix(predicted, gold, 2)
    np.testing.assert_array_equal(confusion, by_sklearn(gold, predicted))
    assert f1_score(confusion) == pytest.approx(f1_by_sklearn(gold, predicted))
    assert f1_score(confusion, positive=0) == pytest.approx(f1_by_sklearn(gold, predicted, pos_label=0))
    assert f1_score(confusion_matrix(np.zeros(3, int), np.zeros(3, int), 2)) == 0.0


def test_calibration_error_is_the_weighted_gap_of_each_bin() -> None:
    probabilities = np.array([[0.1, 0.9], [0.91, 0.09], [0.4, 0.6]])
    # The first two share a bin (0.8667 to 0.9333): one of them is right. The third is right at 0.6.
    expected = (abs(1 - 0.9 - 0.91) + abs(1 - 0.6)) / 3
    assert calibration_error(probabilities, np.array([1, 1, 1])) == pytest.approx(expected)
    with pytest.raises(ValueError, match="0 examples"):
        calibration_error(np.zeros((0, 2)), np.zeros(0, int))


def test_words_are_drawn_in_the_colour_of_their_side() -> None:
    image = draw_coloured_text(["good", "bad"] * 30, np.array([1.0, -1.0] * 30), "a title", gap=1)
    assert image.dtype == np.uint8 and image.shape[2] == 3
    red, blue = (image[..., channel].astype(int) for channel in (0, 2))
    assert (red - blue > 80).sum() > 1000 and (blue - red > 80).sum() > 1000
    one_line = draw_coloured_text(["good", "bad"], np.array([0.0, 0.0]), "a title", gap=1)
    assert one_line.shape[0] < image.shape[0] and one_line.shape[1] == image.shape[1]


def test_a_confidence_at_the_edge_belongs_to_the_bin_below() -> None:
    # 1.0 and 0.95 are of the last bin: one of the two is right.
    found = calibration_error(np.array([[0.0, 1.0], [0.05, 0.95]]), np.array([0, 1]))
    assert found == pytest.approx(0.95 / 2)
