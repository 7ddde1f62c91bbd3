"""Pictures of attention weights."""

from __future__ import annotations

import warnings

import numpy as np

from paddle_dialog.figures.charts import draw_heat_map


def brightest_blocks(image: np.ndarray) -> int:
    """Return pixels in the colour of the largest weight."""
    yellow = np.array([253, 231, 36])
    return int((np.abs(image.astype(int) - yellow).max(axis=2) <= 2).sum())


def test_is_an_rgb_picture_that_grows_with_the_tokens() -> None:
    small = draw_heat_map(np.full((2, 3), 0.5), ["a", "b"], ["c", "d", "e"])
    large = draw_heat_map(np.full((6, 3), 0.5), list("abcdef"), ["c", "d", "e"])
    assert small.dtype == large.dtype == np.uint8
    assert small.ndim == 3 and small.shape[2] == 3
    assert large.shape[0] > small.shape[0] and large.shape[1] == small.shape[1]


def test_large_weights_are_bright() -> None:
    labels = list("abcd")
    one = draw_heat_map(np.eye(4)[:1].repeat(4, axis=0) * np.eye(4), labels, labels)
    four = draw_heat_map(np.eye(4), labels, labels)
    assert brightest_blocks(four) > 3 * brightest_blocks(one) > 0


def test_small_weights_are_told_apart() -> None:
    flat = np.full((4, 4), 0.01)
    peak = flat.copy()
    peak[1, 2] = 0.03
    assert brightest_blocks(draw_heat_map(peak, list("abcd"), list("abcd"))) > 100


def test_nothing_warns_whatever_font_is_installed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_heat_map(np.eye(2), ["春", "<eos>"], ["秋", "\U0010fffd"])  # one that no font has


def test_a_dollar_sign_in_a_token_is_no_formula() -> None:
    draw_heat_map(np.full((1, 2), 0.5), ["$_^$"], ["$\\nonsense$", "$"])
