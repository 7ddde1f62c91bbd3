"""The dialogues that come with the project."""

from collections import defaultdict

from tasks.empathetic.data import read_dialogues
from tasks.empathetic.emotions import EMOTIONS
from tasks.empathetic.metrics import stock_replies
from tasks.empathetic.tokenise import tokenise


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
