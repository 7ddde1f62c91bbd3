"""The dialogues that come with the project."""

from collections import defaultdict

import pytest

from paddle_dialog.text.characters import is_hanzi
from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.data.language import tokenise
from tasks.empathetic.data.sources import read_dialogues
from tasks.empathetic.evaluation import stock_replies


def test_every_emotion_has_three_conversations():
    openings = defaultdict(set)
    for dialogue in read_dialogues("sample"):
        openings[dialogue.emotion].add(dialogue.context[0])
    assert set(openings) == set(EMOTIONS)
    assert {len(turns) for turns in openings.values()} == {3}


def test_each_emotion_has_a_longer_conversation_whose_history_is_an_example_too():
    dialogues = read_dialogues("sample")
    assert len(dialogues) == 128
    longer = [dialogue for dialogue in dialogues if len(dialogue.context) == 3]
    assert {dialogue.emotion for dialogue in longer} == set(EMOTIONS)
    shorter = {(dialogue.context[0], dialogue.target) for dialogue in dialogues if len(dialogue.context) == 1}
    assert {(dialogue.context[0], dialogue.context[1]) for dialogue in longer} <= shorter


def test_replies_differ_and_none_is_a_stock_reply():
    replies = [tokenise(dialogue.target) for dialogue in read_dialogues("sample")]
    assert len({tuple(reply) for reply in replies}) == len(replies)
    assert stock_replies(replies) == 0


def test_turns_are_plain_text_with_a_situation_each():
    for dialogue in read_dialogues("sample"):
        assert dialogue.situation
        for turn in [*dialogue.context, dialogue.target]:
            assert turn.isascii()
            assert turn[0].isupper()
            assert turn[-1] in ".!?"
            assert len(tokenise(turn)) <= 30


def test_small_talk_is_plain_text_with_short_replies_that_ask():
    dialogues = read_dialogues("small_talk")
    assert len({tuple(dialogue.context) for dialogue in dialogues}) == len(dialogues) >= 150
    replies = [dialogue.target for dialogue in dialogues]
    for turn in [turn for dialogue in dialogues for turn in dialogue.context] + replies:
        assert turn.isascii()
        assert turn[0].isupper()
        assert turn[-1] in ".!?"
    assert all(5 <= len(reply.split()) <= 20 for reply in replies)
    assert stock_replies([tokenise(reply) for reply in replies]) == 0
    assert sum(reply.endswith("?") for reply in replies) / len(replies) > 0.8


def test_small_talk_has_both_no_emotion_and_emotions_and_longer_conversations():
    dialogues = read_dialogues("small_talk")
    without = [dialogue for dialogue in dialogues if dialogue.emotion is None]
    assert 0.4 < len(without) / len(dialogues) < 0.6
    assert sum(len(dialogue.context) == 3 for dialogue in dialogues) >= 30


@pytest.mark.parametrize(("language", "shortest", "longest"), [("en", 12, 160), ("zh", 6, 48)])
def test_everyday_dialogues_are_short_and_say_nothing_twice(
    language: str, shortest: int, longest: int
) -> None:
    dialogues = read_dialogues("everyday", language)
    assert len(dialogues) >= 900 and {len(d.context) for d in dialogues} == {1, 3}
    assert len({d.target for d in dialogues}) == len(dialogues)
    for dialogue in dialogues:
        assert shortest <= len(dialogue.target) <= longest
        assert any(map(is_hanzi, dialogue.target)) == (language == "zh")
