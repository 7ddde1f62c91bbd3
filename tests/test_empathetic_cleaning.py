"""Which replies serve in other conversations, and how they are printed."""

from __future__ import annotations

import pytest

from tasks.empathetic.cleaning import RARE, RULES, Reply, WordUse, fault_of, tidied
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.language import ENGLISH
from tasks.empathetic.store_building import good_replies

GOOD = [
    "That is awful! Did you call the police?",
    "I am so sorry to hear that.",
    "I'm really sorry, that must hurt.",
    "Oh my goodness, I hope they are ok.",
    "I bet you were proud of her.",
    "I can imagine. You must miss it a lot.",
    "No way! How did it go?",
    "I would have been so scared!",
    "You have my condolences.",
]
FAULTS = {
    "short": ["Cool.", "?!", "Aww..."],
    "long": ["so " * 26 + "sad"],
    "answer": ["Yes, it was.", "No, not yet."],
    "number or date": ["It was 5 pm.", "See you on Monday.", "Two of them?"],
    "name": ["Did Rex bark?", "did rex bark?"],
    "own life": [
        "My wife and I did.",
        "I have one too.",
        "I was there.",
        "We all do that.",
        "Me too!",
        "The same happened to me.",
        "I'm a nurse.",
        "I just love it.",
        "I really did.",
        "That happened to my mother.",
        "I know that from experience.",
    ],
    "coarse": ["That sucks a lot."],
    "misspelt": ["That is awfull.", "You must of been sad.", "That is 好 good."],
}


@pytest.fixture(scope="module")
def use() -> WordUse:
    said = [text for texts in [GOOD, *FAULTS.values()] for text in texts]
    correct = [text.lower() for text in said if not {"awfull", "好"} & {*ENGLISH.tokens_of(text)}]
    return WordUse([*correct * 2, *["I met Rex there."] * 9, *["it is it is"] * (RARE // 4)])


def fault(text: str, use: WordUse, asked: bool = False) -> str | None:
    return fault_of(Reply(text, ENGLISH.tokens_of(text), asked), use)


@pytest.mark.parametrize("text", GOOD)
def test_what_serves_others_too_is_kept(text: str, use: WordUse) -> None:
    assert fault(text, use) is None


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in FAULTS.items() for text in texts])
def test_what_belongs_to_one_conversation_is_left_out(rule: str, text: str, use: WordUse) -> None:
    assert fault(text, use) == rule


def test_each_rule_is_tried(use: WordUse) -> None:
    assert FAULTS.keys() == RULES.keys()
    assert fault(GOOD[1], use, asked=True) == "answer"


def test_a_name_is_what_mostly_has_a_capital_inside_of_sentences() -> None:
    use = WordUse(
        ["I saw Rex.", "my rex and your dog", "we met Rex.", "Dogs bark.", "WE SAW A CAT!", "oh God."]
    )
    assert use.is_name("rex")
    assert not any(map(use.is_name, ["dogs", "dog", "cat", "saw", "i", "god", "unseen"]))
    assert use.is_rare("unseen") and not use.is_rare("cat")


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("wow that is great", "Wow that is great."),
        ("oh no ! i'm sorry , dude", "Oh no! I'm sorry, dude."),
        ("thats sad.What happened.", "That's sad. What happened."),
        ("why did he do that", "Why did he do that?"),
        ("i dont know . is it ok.", "I don't know. Is it ok?"),
        ("What a nice surprise", "What a nice surprise."),
        ("Hmm.. what is it...", "Hmm.. what is it..."),
        ("it’s fine :)", "It's fine :)"),
    ],
)
def test_a_reply_is_printed_with_its_marks_in_place(typed: str, printed: str) -> None:
    assert tidied(typed) == printed == tidied(printed)


def test_a_reply_of_several_conversations_stands_once_with_their_emotions() -> None:
    said = [
        ("my dog died .", "That is sad.", "sad"),
        ("my cat died .", "that is sad", "devastated"),
        ("what now ?", "That is good.", "joyful"),
        ("i won", "Cool", None),
        ("i won", "That is good.", None),
    ] * 8
    kept, dropped = good_replies([Dialogue([turn], reply, emotion) for turn, reply, emotion in said])
    assert {text: {one.emotion for one in given} for text, given in kept.items()} == {
        "That is sad.": {"sad", "devastated"},
        "That is good.": {None},
    }
    assert dropped == {"answer": 8, "short": 8, "repeated": 22}
