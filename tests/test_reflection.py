"""Replies that mirror what the speaker said: persons, clauses, kinds, frames, and how they are ranked and marked."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_dialog.tasks.empathetic.clauses import Clause, chinese_clauses, english_clauses
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS_OF
from paddle_dialog.tasks.empathetic.replies import ANY, LIKELY, MIN_EMOTION, Reflector, framed, read_frames

ENGLISH_TURNS = {
    "My dog died last night": ["your dog died last night"],
    "I was so nervous. I am fine now!": ["you were so nervous", "you are fine now"],
    "Well, I really was proud of myself": ["you really were proud of yourself"],
    "I’ve lost our keys and they changed my lock": ["you've lost your keys and they changed your lock"],
    "Did I tell you? Thanks, you are kind. Ok.": [],  # questions, and what is said to the listener
    "Sarah broke my heart": ["Sarah broke your heart"],
    "Found a love letter inside a coat 😀": [
        "you found a love letter inside a coat"
    ],  # who did it was left out
    "I don't know what happened to him. Putting in a car park.": [],
    "I work in I.T. for the government": [],
    "it made me feel great :). I'm bad at guessing, I think haha!": [
        "it made you feel great",
        "you're bad at guessing",
    ],
    "That is so exciting, congratulations!": ["That is so exciting"],  # the rest speaks to the listener
    "I will present my project and am tense about it": [
        "you will present your project and are tense about it"
    ],
    "It was nice when I wasn't so poor. My dog barks and was loud.": [
        "it was nice when you weren't so poor",
        "your dog barks and was loud",
    ],
    "The other night my boyfriend and I watched a really scary film, and I had some trouble sleeping afterwards": [
        "the other night your boyfriend and you watched a really scary film",
        "you had some trouble sleeping afterwards",
    ],
    "Am I embarrassed! I 'm not even mad. Needless to say my mom was furious.": [
        "you're not even mad",
        "your mom was furious",
    ],
    "What sort of difficulties/ However nobody had found it": [],
    "However, nobody had found it. My ex boyfriend and I broke up.": [
        "nobody had found it",
        "your ex boyfriend and you broke up",
    ],
    "My dog died and I have been crying about it for weeks on end, but nothing at all helps me": [
        "your dog died",
        "you have been crying about it for weeks on end",
    ],
    "If my boss": [],
    "They sent out an email saying that he may end up with a substitute teacher until they hire someone.": [],
    "I am always so very alert at night, so that even when something really loud happens I remain calm": [
        "you are always so very alert at night"
    ],
    "I studied for months and months for the hardest exam of my whole life, but I failed it in the end": [
        "you studied for months",
        "you failed it in the end",
    ],
    "My rent went up by 12.5 percent. I lost 3.5 kg!": [
        "your rent went up by 12.5 percent",
        "you lost 3.5 kg",
    ],
    "My boss, Mrs. Lee, called me lazy at work.": ["your boss, Mrs. Lee, called you lazy at work"],
    "Mr. Brown gave me a dog.": ["Mr. Brown gave you a dog"],
    "My teacher, who never liked any of us in that class at all, gave me an F for it": [],
    "I went home to my parents for the whole weekend after all that, and gave up smoking": [
        "you gave up smoking"
    ],
    "I got a new puppy (her name is Bella)!": ["you got a new puppy"],
    "I AM SO ANGRY AT MY SISTER": ["you are so angry at your sister"],
}
CHINESE_TURNS = {
    "我每次做决定都很纠结。": [("你每次做决定都很纠结", "trouble")],
    "但是我总觉得自己会失败。": [("你觉得自己会失败", "trouble")],
    "我会试着跟他谈谈。": [("你会试着跟他谈谈", "plan")],
    "我应该多陪陪孩子。": [("你打算多陪陪孩子", "plan")],
    "我希望能够和他和好。": [("你希望能够和他和好", "wish")],
    "我终于考上了研究生！": [("你终于考上了研究生", "good")],
    "我一点也不开心。": [("你一点也不开心", "trouble")],
    "他现在读高三。": [("他现在读高三", "plain")],
    "谢谢你的建议。我该怎么办？": [],
    "男朋友没以前有耐心了，怎么办？": [("男朋友没以前有耐心了", "plain")],
    "我失恋了该怎么办？": [("你失恋了", "plain")],
    "妈妈总强调，女孩子的成绩会走下坡路？": [
        ("女孩子的成绩会走下坡路", "plain")
    ],  # a title that asks nothing
    "我总是不够自信": [("你总是不够自信", "trouble")],
    "我今年十二岁，我非常怕狗": [("你非常怕狗", "trouble")],
    "室友半夜打游戏，我睡不着。": [
        ("室友半夜打游戏", "plain"),
        ("室友半夜打游戏，你睡不着", "trouble"),
        ("你睡不着", "trouble"),
    ],
    "我以为我会赢。我曾经很幸福。": [("你曾经很幸福", "plain")],
    "我高兴不起来": [("你高兴不起来", "trouble")],
    "我很想他": [("你很想他", "plain")],
    "我很想要一只猫": [("你很想要一只猫", "wish")],
    "看得我哭了《活着》": [("看得你哭了《活着》", "trouble")],
    "俺家的牛没回来": [("你家的牛没回来", "plain")],
}


@pytest.mark.parametrize(("turn", "wanted"), ENGLISH_TURNS.items())
def test_english_clauses_are_mirrored(turn: str, wanted: list[str]) -> None:
    assert [clause.text for clause in english_clauses(turn)] == wanted


@pytest.mark.parametrize(("turn", "wanted"), CHINESE_TURNS.items())
def test_chinese_clauses_are_mirrored(turn: str, wanted: list[tuple[str, str]]) -> None:
    assert [(clause.text, clause.kind) for clause in chinese_clauses(turn)] == wanted


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


def test_a_frame_takes_any_clause() -> None:
    clause = Clause("your dog {} died", "plain", 0.0)
    assert framed("oh, {}.", clause.text) == "Oh, your dog {} died."


def test_a_good_word_gets_no_joy_from_who_feels_bad() -> None:
    emotions = EMOTIONS_OF["zh"]
    felt = np.eye(len(emotions))[emotions.index("annoyed")]
    found = Reflector("zh", emotions).replies("我的家里没有任何温暖，妈妈也不会做饭。他对我很好。", felt, 12)
    assert found and not any("棒" in reply.text or "恭喜" in reply.text for reply in found)
