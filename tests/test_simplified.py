"""Traditional characters made simplified, and the language of a text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.text.language import language_of
from paddle_dialog.text.simplified import simplified


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("我覺得很難過，沒有人瞭解我。", "我觉得很难过，没有人了解我。"),
        ("妳為什麼還愛著她？", "你为什么还爱着她？"),
        ("他是著名的作家，成績顯著。", "他是著名的作家，成绩显著。"),
        ("我今天很开心😊 OK!", "我今天很开心😊 OK!"),
        ("乾坤浩蕩，天乾物燥", "乾坤浩荡，天干物燥"),
        ("", ""),
    ],
)
def test_traditional_characters_become_simplified(text, plain):
    assert simplified(text) == plain


@settings(deadline=None)
@given(st.text())
def test_what_is_simplified_stays_and_no_character_is_lost(text):
    assert len(simplified(text)) == len(text)
    assert simplified(simplified(text)) == simplified(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我丢了工作", "zh"),
        ("I lost my job", "en"),
        ("我的boss今天又骂我了", "zh"),
        ("My boss said 加油 to me today", "en"),
        ("我很sad", "zh"),
        ("ＯＫ", "en"),
        ("😊 123 …", None),
        ("", None),
    ],
)
def test_the_language_is_that_of_most_of_the_text(text, language):
    assert language_of(text) == language
