"""The reply's address: the command's JSON, emotion, decoding, attention, banned words, memory."""

import json
import re
from collections import Counter

import pytest
from empathetic_toys import judged_predictor, random_predictor
from hypothesis import example, given, settings
from hypothesis import strategies as st
from serving_toys import post, served

from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import WordFilter
from paddle_dialog.tasks.empathetic import api
from paddle_dialog.tasks.empathetic.api import ReplyEndpoint
from paddle_dialog.tasks.empathetic.data.dialogue import clean_turn
from paddle_dialog.tasks.empathetic.data.language import ENGLISH, _split_chunk

CONTEXT = ["my dog died .", "oh no !", "he was called Rex ."]


def make_predictor():
    return random_predictor(decoding={"max_length": 8, "beam_size": 3})


def start(predictor=None, words=None):
    endpoint = ReplyEndpoint(LimitsConfig(turns=5, characters=100))
    return served(predictor or make_predictor(), endpoint, words=words)


def ask(client, **request):
    return post(client, "reply", **{"context": CONTEXT, **request})


def test_the_answer_is_that_of_the_command():
    (expected,) = make_predictor().predict_records([json.dumps({"context": CONTEXT})], 2)
    with start() as client:
        assert ask(client, n_best=2) == (200, {**expected, "language": "en"})


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=4))
@example("\x00 \x1f\u3000\x85")
@example("\ufeff")
def test_the_schema_takes_just_the_turns_that_are_not_empty(turn):
    limits = LimitsConfig(characters=100)
    schema = ReplyEndpoint(limits).request_model.model_json_schema()["properties"]["context"]["items"]
    assert schema["minLength"] == 1 and schema["maxLength"] == 100
    if re.search(schema["pattern"], turn):
        clean_turn(turn, "turn")
    else:
        with pytest.raises(ValueError, match="turn is empty"):
            clean_turn(turn, "turn")


def test_attention_has_a_row_for_each_word_that_sums_to_one():
    with start() as client:
        _, record = ask(client, attention=True)
        assert "attention" not in ask(client)[1]
    attention = record["attention"]
    assert attention["source"][:4] == ["<cls>", "my", "dog", "died"]
    assert attention["target"][-1] == "<eos>"
    assert len(attention["weights"]) == len(attention["target"])
    assert all(len(row) == len(attention["source"]) for row in attention["weights"])
    assert all(abs(sum(row) - 1) < 0.01 for row in attention["weights"])


def test_decoding_may_differ_and_does_not_reach_the_next_request():
    with start() as client:
        before = ask(client)
        sample = {"strategy": "sample", "temperature": 2.0, "top_k": 20, "seed": 5}
        drawn = ask(client, decoding=sample, n_best=3)
        assert drawn[0] == 200 and drawn == ask(client, decoding=sample, n_best=3)
        assert drawn[1] != ask(client, decoding={**sample, "seed": 6}, n_best=3)[1]
        assert ask(client, decoding={"strategy": "greedy"})[0] == 200
        assert ask(client, decoding={"beam_size": 7})[0] == 200
        assert ask(client) == before


def test_an_emotion_is_told_to_the_model():
    with start() as client:
        _, felt = ask(client)
        status, told = ask(client, emotion="Joyful")
    assert status == 200 and told["emotion"] == "joyful"
    assert told["emotions"] == felt["emotions"]  # these stay the prediction
    assert told["predictions"] != felt["predictions"]


def test_banned_words_are_refused_and_other_replies_take_their_place():
    with start() as client:
        texts = [p["text"] for seed in range(5) for p in sampled(client, seed)]
    spoken = Counter(word for text in texts for word in {*text.lower().split()} if word.isalpha())
    banned = next(word for word, count in spoken.most_common() if word not in ("i", "won", "a", "prize"))
    words = WordFilter([banned])
    with start(make_predictor(), words) as client:
        assert ask(client, context=[f"so {banned.upper()}!"])[0] == 422
        replies = [p["text"] for seed in range(5) for p in sampled(client, seed)]
    assert any(map(words.finds, texts))
    assert replies == [text for text in texts if not words.finds(text)]


def sampled(client, seed):
    decoding = {"strategy": "sample", "temperature": 3.0, "seed": seed}
    status, record = ask(client, context=["i won a prize"], n_best=5, decoding=decoding)
    assert status == 200, record
    return record["predictions"]


def test_words_of_earlier_conversations_are_forgotten(monkeypatch):
    monkeypatch.setattr(api, "REMEMBERED", 30)
    predictor = make_predictor()
    remembered = [ENGLISH.tokens_of, _split_chunk]  # by the whole process, so by other tests too
    for function in remembered:
        function.cache_clear()
    with start(predictor) as client:
        before = ask(client, attention=True)
        sizes = []
        for number in range(8):
            words = " ".join(f"word{number}x{n}" for n in range(10))
            assert ask(client, context=[words])[0] == 200
            sizes.append((len(predictor.encoder.words()), *(f.cache_info().currsize for f in remembered)))
        assert ask(client, attention=True) == before
    assert sizes.count((0, 0, 0)) >= 2  # at the latest every fourth time, with the 31st word
    assert max(words for words, *_ in sizes) <= 30


def test_replies_of_every_origin_are_told_and_filtered_by_banned_words():
    made = lambda: judged_predictor(replies={"written": 5, "reflections": 2})  # noqa: E731
    with start(made()) as client:
        said = [ask(client, context=[turn], n_best=9)[1] for turn in ("my dog died last night .", "well")]
    origins = [{p["origin"] for p in record["predictions"]} for record in said]
    assert origins == [{"reflected", "model"}, {"written", "model"}]
    assert [record["act"] for record in said] == ["statement", "acknowledgement"]
    written = next(p["text"] for p in said[1]["predictions"] if p["origin"] == "written")
    words = WordFilter([max(re.findall(r"\w+", written), key=len)])
    with start(made(), words) as client:
        _, record = ask(client, context=["well"], n_best=9)
    assert not any(words.finds(p["text"]) for p in record["predictions"])
