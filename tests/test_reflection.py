"""Replies that mirror what the speaker said: persons, clauses, frames, and the tone that suits a turn."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_dialog.tasks.empathetic.clauses import chinese_clauses, clauses_of, english_clauses, option_of
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS_OF
from paddle_dialog.tasks.empathetic.replies import ANY, ANY_AGREEMENT, MIN_EMOTION, Reflector, read_frames
from paddle_dialog.tasks.empathetic.turns import read_turn

TURNS = (
    Path(__file__).parent / "data" / "clauses.tsv"
)  # language, turn, clauses; of Chinese ones with their kind


def test_clauses_are_mirrored() -> None:
    for line in TURNS.read_text(encoding="utf-8").splitlines():
        language, turn, *wanted = line.split("\t")
        found = clauses_of(turn, language)
        assert [one.text if language == "en" else f"{one.text}|{one.kind}" for one in found] == wanted, turn


def test_what_is_about_the_speaker_and_of_a_good_length_comes_first() -> None:
    first = max(
        english_clauses("It was a long day. My sister forgot my birthday again."), key=lambda c: c.weight
    )
    assert first.text == "your sister forgot your birthday again"


@pytest.mark.parametrize(
    ("turn", "language", "option"),
    [
        ("tea or coffee?", "en", "coffee"),
        ("Hi! Should I wear my red dress or my blue one?", "en", "your blue one"),
        ("Are you coming or not?", "en", None),
        ("This is hard, or so it seems.", "en", None),
        ("喝茶还是喝咖啡？", "zh", "喝咖啡"),
        ("去海边还是去山里好呢", "zh", "去山里"),
    ],
)
def test_the_last_option_of_a_choice(turn: str, language: str, option: str | None) -> None:
    assert option_of(turn, language) == option


@given(st.text(max_size=80))
def test_any_text_is_read_and_no_first_person_is_left(text: str) -> None:
    assert not any("我" in clause.text for clause in chinese_clauses(text + "，我很难过。"))
    for clause in english_clauses(text + ". I lost my keys."):
        assert not re.search(r"\b(?:i|my|me|myself)\b", clause.text, re.IGNORECASE | re.ASCII)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_frame_has_its_place_and_every_emotion_a_frame(language: str) -> None:
    frames = read_frames(language)
    emotions = {*EMOTIONS_OF[language], ANY}
    assert {emotion for _, emotion in frames} <= emotions
    assert all(
        frame.count("{}") == 1 and frame.strip() == frame for some in frames.values() for frame in some
    )
    assert all(len(some) == len(set(some)) for some in frames.values())
    if language == "en":
        assert {emotion for _, emotion in frames} == emotions
    kinds = {"en": ["plain"], "zh": ["trouble", "good", "plan", "wish", "plain"]}[language]
    assert all(frames[kind, ANY] for kind in kinds)


def reflector(language: str) -> Reflector:
    return Reflector(language, EMOTIONS_OF[language], lambda text: read_turn(text, "", language).tone)


def test_frames_are_those_of_the_likeliest_emotions_of_the_tone() -> None:
    emotions = EMOTIONS_OF["en"]
    turn = "My dog died last night. I miss him so much."
    felt = np.full(len(emotions), 0.01)
    felt[[emotions.index("sad"), emotions.index("joyful")]] = MIN_EMOTION + 0.1
    found = reflector("en").replies(turn, felt, "sorry", 12)
    assert len(found) == 12 == len({reply.text for reply in found})
    assert {reply.agreement for reply in found} == {MIN_EMOTION + 0.1, ANY_AGREEMENT}
    assert all("dog died last night" in reply.text or "miss him so much" in reply.text for reply in found)
    assert all(reply.text[0].isupper() for reply in found)
    assert reflector("en").replies(turn, felt, "sorry", 12) == found
    assert reflector("en").replies("Thank you!", felt, "plain", 12) == []
    assert reflector("en").replies("", felt, "plain", 12) == []


@pytest.mark.parametrize(
    ("language", "turn", "tone", "never"),
    [
        ("en", "My boss humiliated me in front of everyone.", "sorry", "happy|wonderful|glad"),
        ("en", "They found my lost dog and he is fine!", "glad", "sorry|hard|struggle"),
        ("zh", "我的家里没有任何温暖，妈妈也不会做饭。他对我很好。", "sorry", "棒|恭喜|开心"),
        ("zh", "手术很成功，肿瘤都切干净了！", "glad", "不好受|滋味|心疼|不容易"),
    ],
)
def test_joy_never_gets_sorrow_and_grief_never_joy(language: str, turn: str, tone: Any, never: str) -> None:
    felt = np.full(len(EMOTIONS_OF[language]), 1 / len(EMOTIONS_OF[language]))
    found = reflector(language).replies(turn, felt, tone, 12)
    assert found and not [reply.text for reply in found if re.search(never, reply.text)]


def test_of_a_turn_with_good_and_bad_news_the_other_clause_is_left() -> None:
    felt = np.full(32, 1 / 32)
    turn = "My dog died this morning. I passed my driving test!"
    found = reflector("en").replies(turn, felt, "glad", 12)
    assert found and all("driving test" in reply.text for reply in found)
