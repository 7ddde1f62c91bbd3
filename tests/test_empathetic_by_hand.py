"""Features of replies, contexts and wrong replies worked out by hand."""

import dataclasses

import numpy as np
import pytest
from empathetic_store_toys import make_store, predictor, toy_config
from empathetic_toys import make_config, make_vocabulary
from test_ranker_data import DIALOGUES, make_dataset, texts

from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.data.encoding import make_encoder
from tasks.empathetic.selection.candidate import ReplyPrediction
from tasks.empathetic.selection.overlap import echo, overlaps
from tasks.empathetic.selection.recall import recall_at_1
from tasks.empathetic.selection.rerank import AGAINST


def test_what_speaks_against_a_reply_is_subtracted():
    assert {"mutual_information", "familiarity", "echo", "repetition"} == AGAINST


def test_a_word_of_the_newest_turn_is_not_counted_again_for_the_ones_before():
    assert overlaps(["dog"], [["dog"], ["dog"]]) == (1.0, 0.0)


def test_an_echo_is_of_the_speaker_s_words():
    assert echo(["the", "neighbours", "?"], [["my", "dog"], ["the", "neighbours"]]) == 0.0


def test_the_same_reply_elsewhere_is_no_wrong_one():
    twins = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]]
    assert recall_at_1(twins, twins, "aabb", 1, candidates=3) == 1.0


def test_the_turns_of_a_conversation_are_no_wrong_replies_in_it():
    first = [Dialogue(d.context, f"sorry {d.context[0]}", "sad") for d in DIALOGUES[:4]]
    later = [Dialogue([*d.context, d.target, "thank you ."], d.context[0], "sad") for d in first]
    dataset = make_dataset([*first, *later], same_emotion=6)
    for row in range(8):
        twin = (later if row < 4 else first)[row % 4].target
        assert twin not in texts(dataset, row)[1:]


def test_where_tokens_are_dropped_no_turn_is_the_first():
    turns = ["my dog died .", "oh no !", "yes"]
    whole, cut = make_config(), make_config(data={"max_length": 5})
    assert make_encoder(whole, make_vocabulary()).context(turns).first_turn == 4
    assert make_encoder(cut, make_vocabulary()).context(turns).first_turn == 0


def test_a_reply_of_two_emotions_agrees_by_the_likelier_one():
    emotions = np.zeros(5, np.uint32)
    emotions[1] = (1 << EMOTIONS.index("sad")) | (1 << EMOTIONS.index("proud"))
    model = predictor(dataclasses.replace(make_store(toy_config()), emotions=emotions))
    felt = np.zeros(32)
    for name, probability in {"sad": 0.2, "proud": 0.3, "joyful": 0.5}.items():
        felt[EMOTIONS.index(name)] = probability
    (context,) = model.read([["my dog died ."]])
    context = dataclasses.replace(context, predicted=felt)
    reply = ReplyPrediction("a", 0.0, ("a",), "person", row=1)
    assert model.reranker.features["emotion"]([context], [[reply]]) == pytest.approx([0.3 / 0.5])
