"""Pictures of attention weights."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib import font_manager

from paddle_dialog.figures import fonts
from paddle_dialog.figures.heat_map import draw_heat_map


@pytest.fixture
def no_cjk_font(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Yield a machine that has only the font matplotlib brings along."""
    fonts._font_files.cache_clear()
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [])
    yield
    fonts._font_files.cache_clear()


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


def test_without_chinese_fonts_tokens_are_numbered_and_nothing_warns(no_cjk_font: None) -> None:
    weights = np.eye(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chinese = draw_heat_map(weights, [*"春风", "<eos>"], [*"秋雨", "<eos>"])
        numbered = draw_heat_map(weights, ["1", "2", "<eos>"], ["1", "2", "<eos>"])
    np.testing.assert_array_equal(chinese, numbered)


def test_english_words_need_no_chinese_font(no_cjk_font: None) -> None:
    words, other = ["it’s", "fine"], ["it’s", "dine"]
    assert not np.array_equal(draw_heat_map(np.eye(2), words, words), draw_heat_map(np.eye(2), words, other))


def test_chinese_tokens_are_drawn_where_a_font_has_them() -> None:
    if len(fonts._font_files()) == 1:
        pytest.skip("no Chinese font is installed (Debian: fonts-noto-cjk)")
    assert not np.array_equal(
        draw_heat_map(np.eye(2), ["春", "风"], ["秋", "雨"]), draw_heat_map(np.eye(2), ["1", "2"], ["1", "2"])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_heat_map(np.eye(2), ["春", "<eos>"], ["秋", "\U0010fffd"])  # one that no font has


def test_a_dollar_sign_in_a_token_is_no_formula() -> None:
    draw_heat_map(np.full((1, 2), 0.5), ["$_^$"], ["$\\nonsense$", "$"])
