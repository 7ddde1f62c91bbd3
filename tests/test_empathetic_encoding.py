"""Dialogues and conversations as numbers: contexts, extended ids, singletons, what is learned, batches."""

import json
from collections import Counter

import numpy as np
from empathetic_toys import DIALOGUES, make_config, make_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.tasks.empathetic.config import EmpatheticDataConfig
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue, read_conversations
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, EmotionLexicon, emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import (
    CLS_ID,
    FIRST_EMOTION_ID,
    HINT_ID,
    LISTENER,
    LISTENER_ID,
    NO_ROLE,
    SPEAKER,
    SPEAKER_ID,
    DialogueEncoder,
    chosen_vocabulary,
    count_words,
    make_encoder,
    reserved_entries,
)
from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, collate, longest_target
from paddle_dialog.tasks.empathetic.data.language import ENGLISH
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5), min_size=1, max_size=6),
    st.integers(1, 20),
)
def test_of_a_long_context_the_end_is_read_and_roles_alternate_from_the_speaker(turns, room):
    encoder = DialogueEncoder(make_vocabulary(), make_config(data={"max_length": room}))
    context = encoder.context([" ".join(turn) for turn in turns])
    roles = [(SPEAKER, LISTENER)[place % 2] for place, turn in enumerate(turns) for _ in turn]
    words = [word for turn in turns for word in turn]
    assert [encoder.words()[number] for number in context.words] == words[-room:]
    assert context.roles.tolist() == roles[-room:]
    assert context.first_turn == (len(turns[0]) if len(roles) <= room else 0)
    assert len({SPEAKER, LISTENER, NO_ROLE}) == 3


def test_reserved_entries_precede_words_of_which_a_turn_that_examples_repeat_counts_once():
    dialogues = [Dialogue(["a"], "b"), Dialogue(["a", "b", "c"], "d"), Dialogue(["a"], "e")]
    assert count_words(dialogues) == Counter(a=2, b=1, c=1, d=1, e=1)
    counts = Counter({"dog": 2, "cat": 1})
    vocabulary = chosen_vocabulary(EmpatheticDataConfig(min_count=1), counts, ENGLISH, None)
    assert vocabulary.id("<cls>") == CLS_ID == 4
    assert [vocabulary.id(f"<{emotion}>") - FIRST_EMOTION_ID for emotion in EMOTIONS] == list(range(32))
    assert vocabulary.decode([40, 41]) == ["dog", "cat"]


def test_a_context_is_packed_with_roles_hints_and_extended_ids():
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *reserved_entries(), "good", "dog"])
    encoder = DialogueEncoder(vocabulary, make_config(), EmotionLexicon(["good"]))
    context = encoder.context(["Rex good dog", "Fido", "Rex"])
    source, extended = encoder.pack(context, emotion_id("sad"))
    size = len(vocabulary)
    assert source.words.tolist() == [CLS_ID, size, 40, 41, size + 1, size]
    assert source.roles.tolist() == [0, SPEAKER_ID, SPEAKER_ID, SPEAKER_ID, LISTENER_ID, SPEAKER_ID]
    assert source.hints.tolist() == [0, 0, HINT_ID, 0, 0, 0] and source.condition == emotion_id("sad")
    words = encoder.words()
    assert {words[number]: index for number, index in extended.items()} == {"rex": size, "fido": size + 1}
    target = encoder.target(encoder.numbers(["fido", "good", "bello"]), extended)
    assert target.tolist() == [size + 1, 40, Vocabulary.unk_id]


def dataset(rate=0.5):
    config = make_config(data={"unknown_rate": rate})
    return DialogueDataset(DIALOGUES, make_encoder(config, make_vocabulary()), 50, count_words(DIALOGUES))


def test_some_words_seen_once_are_unknown_in_an_epoch_and_others_in_the_next():
    data, size = dataset(), len(make_vocabulary())
    seen = []
    for epoch in range(20):
        data.set_epoch(epoch)
        source, target = data[0].source, data[0].target
        again = data[0]
        np.testing.assert_array_equal(again.source.words, source.words)
        np.testing.assert_array_equal(again.target, target)
        seen.append(frozenset(np.flatnonzero(source.words >= size).tolist()))
    assert len(set(seen)) > 3
    words = ["<cls>", *(data.encoder.words()[n] for n in data.encoder.context(DIALOGUES[0].context).words)]
    hidden = {words[place] for places in seen for place in places}
    assert {"died", "called"} <= hidden
    assert not hidden & {"dog", "rex", ".", "my"}  # seen more than once
    data.set_epoch(0)
    counted = DialogueDataset(DIALOGUES, make_encoder(make_config(), make_vocabulary()), 50)
    assert (counted[0].source.words < size).all()  # dev data stay as they are


def test_a_hidden_word_of_the_reply_is_unknown_or_copied():
    data, size = dataset(rate=1.0), len(make_vocabulary())
    assert data[1].target.tolist()[0] == Vocabulary.unk_id  # "congratulations" stands in no context
    assert set(data[0].target.tolist()) & set(data[0].source.words.tolist())
    words = data[1].source.words[1:].tolist()  # i won a happy prize
    assert [word >= size for word in words] == [True, True, False, True, True]  # "a" is no singleton


def test_a_batch_is_shifted_by_begin_and_end():
    data = DialogueDataset(DIALOGUES, make_encoder(make_config(), make_vocabulary()), 2)
    assert data.cut_targets == 2
    batch = collate([data[0], data[1]])
    lengths, target_in, target_out = batch.source_lengths, batch.target, batch.label
    assert batch.words.shape == batch.roles.shape == (2, lengths.max())
    assert not batch.words[1, lengths[1] :].any() and batch.ngrams is None
    assert target_in[:, 0].tolist() == [Vocabulary.bos_id] * 2
    np.testing.assert_array_equal(target_in[:, 1:], target_out[:, :-1])
    assert target_out[0, -1] == Vocabulary.eos_id and batch.mask.sum() == 6
    assert batch.emotion.tolist() == [emotion_id("sad"), emotion_id("proud")]


END, UNKNOWN = Vocabulary.eos_id, Vocabulary.unk_id
MARKED = {"generator": {"context_weight": 1.0}, "data": {"mark_turns": True}}


def written(folder, *conversations):
    """Return a file of conversations."""
    path = folder / "talk.jsonl"
    path.write_text("".join(json.dumps({"turns": turns, "source": "x"}) + "\n" for turns in conversations))
    return str(path)


def test_a_short_conversation_is_one_piece_and_a_long_one_several(tmp_path):
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
def test_every_turn_that_is_answered_is_learned_exactly_once(sizes, room, tmp_path_factory):
    names = iter(range(1000))
    conversations = [[" ".join([f"t{next(names)}"] * size) for size in own] for own in sizes]
    learned = []
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


def encoder(max_length=100):
    """Return an encoder that marks turns and knows the words a, b, c and d."""
    vocabulary = make_vocabulary([Dialogue(["a b"], "c d")])
    config = make_config("causal", **{**MARKED, "data": {"mark_turns": True, "max_length": max_length}})
    return DialogueEncoder(vocabulary, config), vocabulary


def test_contexts_are_learned_from_mark_to_end_turn_by_turn():
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


def test_of_a_cut_context_what_is_left_is_learned():
    made, vocabulary = encoder(max_length=5)
    a, b = map(vocabulary.id, "ab")
    turns = ["d d d", "c x a", "b"]
    context = made.context(turns)  # x a <speaker> b, and the c before them
    assert [made.words()[number] for number in context.words] == ["c", "x", "a", "<speaker>", "b"]
    assert made.learned(context, turns, 3).tolist() == [0, 0, a, END, b, END]
    assert made.learned(context, turns, 1).tolist() == [0, 0, 0, 0, b, END]


def test_training_data_alone_tell_what_follows():
    _, vocabulary = encoder()
    dialogue = Dialogue(["a b", "c", "d"], "a", new_turns=2)
    config = make_config("causal", **MARKED)
    training, dev = (
        DialogueDataset([dialogue], make_encoder(config, vocabulary), 9, counts)[0].next_words
        for counts in (Counter(a=2), None)
    )
    c, d = map(vocabulary.id, "cd")
    assert training.tolist() == [0, 0, 0, 0, c, END, d, END]
    assert dev is None


def test_a_long_reply_of_dev_data_still_finds_positions():
    config = make_config(
        "causal", model={"max_positions": 110}, data={"max_length": 30, "max_target_length": 60}
    )
    assert longest_target(config) == 110 - 31 - 1
    _, vocabulary = encoder()
    long = Dialogue(["a " * 40], "b " * 90)
    example = DialogueDataset([long], make_encoder(config, vocabulary), longest_target(config))[0]
    assert len(example.source.words) + len(example.target) + 1 == 110
    assert np.all(example.target == vocabulary.id("b"))
