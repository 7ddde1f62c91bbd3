"""Conversations without annotation."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from empathetic_toys import make_config, make_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.encoding import LISTENER_ID, SPEAKER_ID, DialogueEncoder
from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, longest_target
from paddle_dialog.tasks.empathetic.data.sources import read_conversations
from paddle_dialog.text.vocabulary import Vocabulary

END, UNKNOWN = Vocabulary.eos_id, Vocabulary.unk_id
MARKED = {"generator": {"context_weight": 1.0}, "data": {"mark_turns": True}}


def written(folder: Path, *conversations: list[str]) -> str:
    """Return a file of conversations."""
    path = folder / "talk.jsonl"
    path.write_text("".join(json.dumps({"turns": turns, "source": "x"}) + "\n" for turns in conversations))
    return str(path)


def test_a_short_conversation_is_one_piece_and_a_long_one_several(tmp_path: Path) -> None:
    path = written(tmp_path, ["a", "b c", "d", "e"], ["f", "g", "h"])
    assert read_conversations(path, 100) == [
        Dialogue(["a", "b c", "d"], "e", new_turns=3),
        Dialogue(["f"], "g", new_turns=1),  # the speaker's last turn has no answer
    ]
    # marks counted, a context of three turns has 2 + 3 + 2 tokens
    assert read_conversations(path, 7)[0] == Dialogue(["a", "b c", "d"], "e", new_turns=3)
    assert read_conversations(path, 6)[:2] == [
        Dialogue(["a"], "b c", new_turns=1),
        Dialogue(["a", "b c", "d"], "e", new_turns=1),
    ]


@settings(deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(1, 9), min_size=2, max_size=15), min_size=1, max_size=4),
    room=st.integers(1, 40),
)
def test_every_turn_that_is_answered_is_learned_exactly_once(
    sizes: list[list[int]], room: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = iter(range(1000))
    conversations = [[" ".join([f"t{next(names)}"] * size) for size in own] for own in sizes]
    learned: list[str] = []
    for piece in read_conversations(written(tmp_path_factory.mktemp("talk"), *conversations), room):
        assert len(piece.context) % 2 and 1 <= piece.new_turns <= len(piece.context)
        learned += [*piece.context[-piece.new_turns :], piece.target]
        whole = next(own for own in conversations if piece.target in own)
        start = whole.index(piece.context[0])
        turns = [*piece.context, piece.target]
        assert start % 2 == 0 and whole[start : start + len(turns)] == turns
        # a piece outgrows its room only where its fewest turns do
        assert sum(len(turn.split()) + 1 for turn in piece.context) <= room or piece.new_turns == 1
    assert learned == [turn for own in conversations for turn in own[: len(own) // 2 * 2]]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "talk.jsonl:2: broken JSON"),
        ('{"turns": ["a", 1]}', "talk.jsonl:2: turn 2 is 1; it must be a string"),
        ('{"turns": ["a", " "]}', r"talk.jsonl:2: turn 2 is empty; a line must be \{"),
    ],
)
def test_a_faulty_line_is_numbered(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(f'{{"turns": ["a", "b"]}}\n{line}\n')
    with pytest.raises(UserError, match=told):
        read_conversations(str(path), 10)


def encoder(max_length: int = 100) -> tuple[DialogueEncoder, Vocabulary]:
    """Return an encoder that marks turns and knows the words a, b, c and d."""
    vocabulary = make_vocabulary([Dialogue(["a b"], "c d")])
    config = make_config("causal", **{**MARKED, "data": {"mark_turns": True, "max_length": max_length}})
    return DialogueEncoder(vocabulary, config), vocabulary


def test_contexts_are_learned_from_mark_to_end_turn_by_turn() -> None:
    made, vocabulary = encoder()
    a, b, c = map(vocabulary.id, "abc")
    turns = ["a b", "c x a", "b"]
    context = made.context(turns)
    ids = made.pack(context)[0].words.tolist()
    assert ids[:8] == [4, SPEAKER_ID, a, b, LISTENER_ID, c, len(vocabulary), a] and ids[8:] == [SPEAKER_ID, b]
    # CLS; <speaker> a b; <listener> c x a; <speaker> b. What follows c is outside the vocabulary.
    assert made.learned(context, turns, 3).tolist() == [0, a, b, END, c, 0, a, END, b, END]
    assert made.learned(context, turns, 2).tolist() == [0, 0, 0, 0, c, 0, a, END, b, END]
    assert made.learned(context, turns, 1).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, b, END]


def test_of_a_cut_context_what_is_left_is_learned() -> None:
    made, vocabulary = encoder(max_length=5)
    a, b = map(vocabulary.id, "ab")
    turns = ["d d d", "c x a", "b"]
    context = made.context(turns)  # x a <speaker> b, and the c before them
    assert [made.words()[number] for number in context.words] == ["c", "x", "a", "<speaker>", "b"]
    assert made.learned(context, turns, 3).tolist() == [0, 0, a, END, b, END]
    assert made.learned(context, turns, 1).tolist() == [0, 0, 0, 0, b, END]


def test_training_data_alone_tell_what_follows() -> None:
    _, vocabulary = encoder()
    dialogue = Dialogue(["a b", "c", "d"], "a", new_turns=2)
    config = make_config("causal", **MARKED)
    training, dev = (
        DialogueDataset([dialogue], config, vocabulary, 9, counts)[0].next_words
        for counts in (Counter(a=2), None)
    )
    c, d = map(vocabulary.id, "cd")
    assert training.tolist() == [0, 0, 0, 0, c, END, d, END]
    assert dev is None


def test_a_long_reply_of_dev_data_still_finds_positions() -> None:
    config = make_config(
        "causal", model={"max_positions": 110}, data={"max_length": 30, "max_target_length": 60}
    )
    assert longest_target(config) == 110 - 31 - 1
    _, vocabulary = encoder()
    long = Dialogue(["a " * 40], "b " * 90)
    example = DialogueDataset([long], config, vocabulary, longest_target(config))[0]
    assert len(example.source.words) + len(example.target) + 1 == 110
    assert np.all(example.target == vocabulary.id("b"))
