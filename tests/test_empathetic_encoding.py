"""Dialogues as numbers: cut contexts, sources, extended ids, singletons, batches."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from empathetic_toys import DIALOGUES, make_config, make_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.config import EmpatheticDataConfig
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
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
    reserved_entries,
)
from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, collate
from paddle_dialog.tasks.empathetic.data.language import ENGLISH
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5), min_size=1, max_size=6),
    st.integers(1, 20),
)
def test_of_a_long_context_the_end_is_read_and_roles_alternate_from_the_speaker(
    turns: list[list[str]], room: int
) -> None:
    encoder = DialogueEncoder(make_vocabulary(), make_config(data={"max_length": room}))
    context = encoder.context([" ".join(turn) for turn in turns])
    roles = [(SPEAKER, LISTENER)[place % 2] for place, turn in enumerate(turns) for _ in turn]
    assert [encoder.words()[number] for number in context.words] == [w for turn in turns for w in turn][
        -room:
    ]
    assert context.roles.tolist() == roles[-room:]
    assert context.first_turn == (len(turns[0]) if len(roles) <= room else 0)
    assert len({SPEAKER, LISTENER, NO_ROLE}) == 3


def test_reserved_entries_follow_the_special_tokens(tmp_path: Path) -> None:
    counts, file = Counter({"dog": 2, "cat": 1}), tmp_path / "own.txt"
    vocabulary = chosen_vocabulary(EmpatheticDataConfig(min_count=1), counts, ENGLISH, None)
    assert vocabulary.id("<cls>") == CLS_ID == 4
    assert [vocabulary.id(f"<{emotion}>") - FIRST_EMOTION_ID for emotion in EMOTIONS] == list(range(32))
    assert vocabulary.decode([40, 41]) == ["dog", "cat"]
    Vocabulary.build(["dog", "cat"]).save(file)
    for wrong, told in (
        (EmpatheticDataConfig(vocabulary=str(file)), r"own\.txt: is not a vocabulary of this task"),
        (EmpatheticDataConfig(max_vocabulary=40), r"data\.max_vocabulary: is 40"),
    ):
        with pytest.raises(UserError, match=told):
            chosen_vocabulary(wrong, Counter("cat"), ENGLISH, None)


def test_a_turn_that_examples_repeat_counts_once() -> None:
    dialogues = [Dialogue(["a"], "b"), Dialogue(["a", "b", "c"], "d"), Dialogue(["a"], "e")]
    assert count_words(dialogues) == Counter(a=2, b=1, c=1, d=1, e=1)


def test_a_context_is_packed_with_roles_hints_and_extended_ids() -> None:
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


def dataset(rate: float = 0.5) -> DialogueDataset:
    config = make_config(data={"unknown_rate": rate})
    return DialogueDataset(DIALOGUES, config, make_vocabulary(), 50, count_words(DIALOGUES))


def test_some_words_seen_once_are_unknown_in_an_epoch_and_others_in_the_next() -> None:
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
    counted = DialogueDataset(DIALOGUES, make_config(), make_vocabulary(), 50)
    assert (counted[0].source.words < size).all()  # dev data stay as they are


def test_a_hidden_word_of_the_reply_is_unknown_or_copied() -> None:
    data, size = dataset(rate=1.0), len(make_vocabulary())
    assert data[1].target.tolist()[0] == Vocabulary.unk_id  # "congratulations" stands in no context
    assert set(data[0].target.tolist()) & set(data[0].source.words.tolist())
    words = data[1].source.words[1:].tolist()  # i won a happy prize
    assert [word >= size for word in words] == [True, True, False, True, True]  # "a" is no singleton


def test_a_batch_is_shifted_by_begin_and_end() -> None:
    data = DialogueDataset(DIALOGUES, make_config(), make_vocabulary(), 2)
    assert data.cut_targets == 2
    batch = collate([data[0], data[1]])
    lengths, target_in, target_out = batch.source_lengths, batch.target, batch.label
    assert batch.words.shape == batch.roles.shape == (2, lengths.max())
    assert not batch.words[1, lengths[1] :].any() and batch.ngrams is None
    assert target_in[:, 0].tolist() == [Vocabulary.bos_id] * 2
    np.testing.assert_array_equal(target_in[:, 1:], target_out[:, :-1])
    assert target_out[0, -1] == Vocabulary.eos_id and batch.mask.sum() == 6
    assert batch.emotion.tolist() == [emotion_id("sad"), emotion_id("proud")]
