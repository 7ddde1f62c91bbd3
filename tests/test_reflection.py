"""Replies that mirror what the speaker said: persons, clauses, kinds, frames, and how they are ranked and marked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_dialog.tasks.empathetic.clauses import chinese_clauses, clauses_of, english_clauses
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS_OF
from paddle_dialog.tasks.empathetic.replies import ANY, LIKELY, MIN_EMOTION, Reflector, read_frames

TURNS = (
    Path(__file__).parent / "data" / "clauses.tsv"
)  # language, turn, clauses; of Chinese ones with their kind


def test_clauses_are_mirrored() -> None:
    for line in TURNS.read_text(encoding="utf-8").splitlines():
        language, turn, *wanted = line.split("\t")
        found = clauses_of(turn, language)
        assert [one.text if language == "en" else f"{one.text}|{one.kind}" for one in found] == wanted, turn


def test_what_hurts_and_what_is_about_the_speaker_comes_first() -> None:
    first = max(chinese_clauses("他现在读高三。我真的很担心他的成绩。"), key=lambda clause: clause.weight)
    assert first.text == "你真的很担心他的成绩"
    first = max(
        english_clauses("It was a long day. My sister forgot my birthday again."), key=lambda c: c.weight
    )
    assert first.text == "your sister forgot your birthday again"


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


def test_frames_are_those_of_the_likeliest_emotions(monkeypatch: pytest.MonkeyPatch) -> None:
    emotions = EMOTIONS_OF["en"]
    reflector = Reflector("en", emotions)
    felt = np.linspace(0, MIN_EMOTION, len(emotions)) + 0.01
    found = reflector.replies("My dog died last night. I miss him so much.", felt, 12)
    assert len(found) == 12 == len({reply.text for reply in found})
    assert {reply.emotions for reply in found} == {*((name,) for name in emotions[-LIKELY:]), ()}
    assert all("dog died last night" in reply.text or "miss him so much" in reply.text for reply in found)
    assert all(reply.text[0].isupper() for reply in found)
    again = reflector.replies("My dog died last night. I miss him so much.", felt, 12)
    assert again == found
    assert reflector.replies("Thank you!", felt, 12) == [] == reflector.replies("", felt, 12)


def test_what_is_grim_gets_no_joy() -> None:
    emotions = EMOTIONS_OF["en"]
    felt = np.eye(len(emotions))[emotions.index("content")]
    found = Reflector("en", emotions).replies("It scarred me for life.", felt, 12)
    assert found and ("content",) not in {reply.emotions for reply in found}
    assert any("I really feel for you" in reply.text for reply in found)
    assert not any("wonderful" in reply.text or "happy" in reply.text for reply in found)


def test_a_good_word_gets_no_joy_from_who_feels_bad() -> None:
    emotions = EMOTIONS_OF["zh"]
    felt = np.eye(len(emotions))[emotions.index("annoyed")]
    found = Reflector("zh", emotions).replies("我的家里没有任何温暖，妈妈也不会做饭。他对我很好。", felt, 12)
    assert found and not any("棒" in reply.text or "恭喜" in reply.text for reply in found)
