"""The couplet's address: the command's JSON, locks, rules, banned words, batches."""

from unittest import mock

import pytest
from couplet_toys import LEVEL, OBLIQUE, toy
from serving_toys import loader, make_app, running

from paddle_dialog.serving.batcher import SLOW
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import WordFilter
from paddle_dialog.tasks.couplet.api import CoupletEndpoint, tone_names
from paddle_dialog.tasks.couplet.couplets import Couplet
from paddle_dialog.tasks.couplet.known import COUPLET_INDEX, index_bytes

FIRST = "雨水月"


def start(predictor=None, words=None, **settings):
    predictor = predictor or toy(LEVEL + OBLIQUE)
    endpoint = CoupletEndpoint(LimitsConfig())
    words = words or WordFilter()
    return running(make_app(endpoint, words=words, load=loader(endpoint, predictor, words), **settings))


def ask(client, **request):
    response = client.post("/v1/couplet", json={"first": FIRST, **request})
    return response.status_code, response.json()


def test_the_answer_is_that_of_the_command_with_tones():
    (expected,) = toy(LEVEL + OBLIQUE).predict_records([" 雨水 月"], 3)
    with start() as client:
        status, record = ask(client, first=" 雨水 月", n_best=3)
        card = client.get("/v1/models").json()["models"][0]
    assert status == 200
    assert {key: record[key] for key in expected} == expected
    assert record["line"] == FIRST
    assert record["tones"]["first"] == ["ze", "ze", "ze"]
    assert record["tones"]["second"] == [tone_names(p["text"]) for p in expected["predictions"]]
    assert card["task"] == "couplet" and card["details"]["longest_line"] == 10
    assert card["details"]["rules"]["final_tone"] is True and card["details"]["reverse"] is False


@pytest.mark.parametrize(
    ("beam_size", "n_best", "is_slow"), [(10, 1, False), (10, 5, False), (190, 1, False), (190, 20, True)]
)
def test_many_rows_of_many_characters_are_slow(beam_size, n_best, is_slow):
    endpoint = CoupletEndpoint(LimitsConfig(n_best=50))
    endpoint.use(toy(LEVEL + OBLIQUE, beam_size=beam_size), WordFilter())
    asked = endpoint.request_model(first="雨水月雨水月雨水月雨", n_best=n_best)
    assert (endpoint.prepare(asked).cost > SLOW) == is_slow


def test_a_second_line_is_answered_with_first_lines():
    predictor = toy(LEVEL + OBLIQUE, marks=True)
    (expected,) = predictor.predict_records(["雨水山"], 3, second=True)
    with start(predictor) as client:
        response = client.post("/v1/couplet", json={"second": "雨水山", "n_best": 3})
        record = response.json()
        locked = client.post("/v1/couplet", json={"second": "雨水山", "lock": "？？鸟"}).json()
        assert client.get("/v1/models").json()["models"][0]["details"]["reverse"] is True
        refused = [
            client.post("/v1/couplet", json=body)
            for body in ({}, {"first": FIRST, "second": FIRST}, {"second": "abc"})
        ]
    assert response.status_code == 200 and "first" not in record
    assert {key: record[key] for key in expected} == expected
    assert record["tones"]["second"] == ["ze", "ze", "ping"]
    assert record["tones"]["first"] == [tone_names(p["text"]) for p in expected["predictions"]]
    assert all(p["text"].endswith("鸟") and p["form"]["final_pair"] for p in locked["predictions"])
    assert [response.status_code for response in refused] == [422] * 3
    assert "exactly one of first" in refused[0].text and "exactly one of first" in refused[1].text
    with start() as client:
        response = client.post("/v1/couplet", json={"second": "雨水山"})
        assert response.status_code == 422 and "knows only 下联 for 上联" in response.text


def test_answers_name_the_nearest_couplet_of_the_corpus():
    predictor = toy(LEVEL + OBLIQUE)
    with start(predictor) as client:
        _, record = ask(client, n_best=2)
    assert not any("known" in prediction for prediction in record["predictions"])
    texts = [prediction["text"] for prediction in record["predictions"]]
    predictor = toy(LEVEL + OBLIQUE)
    predictor._trained.files = {COUPLET_INDEX: index_bytes([Couplet("鸟老客", texts[0])])}
    with start(predictor) as client:
        _, record = ask(client, n_best=2)
    known = [prediction["known"] for prediction in record["predictions"]]
    far = sum(a != b for a, b in zip(*texts, strict=True))
    assert known == [{"first": "鸟老客", "second": texts[0], "distance": d} for d in (0, far)]


def test_locked_characters_and_rules_are_kept():
    with start() as client:
        _, locked = ask(client, lock="？山？")
        _, free = ask(client, rules={"enabled": False}, n_best=10)
        _, strict = ask(client, n_best=10)
        assert ask(client, lock="山")[0] == ask(client, rules={"final_tones": True})[0] == 422
    assert all(p["text"][1] == "山" for p in locked["predictions"])
    assert all(p["form"]["final_level"] and p["form"]["length_equal"] for p in strict["predictions"])
    assert not all(p["form"]["final_level"] and p["form"]["length_equal"] for p in free["predictions"])


def test_requests_with_other_locks_share_a_search_and_other_rules_do_not():
    predictor = toy(LEVEL + OBLIQUE)
    endpoint = CoupletEndpoint(LimitsConfig())
    endpoint.use(predictor, WordFilter())
    model = endpoint.request_model
    jobs = [
        endpoint.prepare(model(**request))
        for request in (
            {"first": FIRST, "lock": "？山？"},
            {"first": "柳鸟"},
            {"first": FIRST, "rules": {"final_tone": False}},
            {"first": FIRST, "n_best": 2},
        )
    ]
    assert jobs[0].settings == jobs[1].settings
    assert len({job.settings for job in jobs}) == 3
    with mock.patch.object(predictor._search, "candidates", wraps=predictor._search.candidates) as search:
        together = endpoint.answer([job.item for job in jobs[:2]], jobs[0].settings)
    assert search.call_count == 1
    alone = [endpoint.answer([job.item], job.settings)[0] for job in jobs[:2]]
    assert together == alone


def test_banned_words_are_refused_in_line_and_lock_and_never_written():
    with start() as client:
        _, record = ask(client, n_best=10)
        _, free = ask(client, n_best=10, rules={"enabled": False})
    words = sorted(
        {p["text"][:2] for p in (*record["predictions"], *free["predictions"]) if len(p["text"]) > 1}
    )
    filter_ = WordFilter([*words, "香"])
    with start(words=filter_) as client:
        assert ask(client, first="雨香")[0] == ask(client, lock="？香？")[0] == 422
        for rules in (None, {"enabled": False}):
            status, record = ask(client, n_best=10, rules=rules)
            assert status in (200, 422)
            assert not any(filter_.finds(p["text"]) for p in record.get("predictions", ()))
    with start(words=WordFilter([words[0]])) as client:
        status, record = ask(client, n_best=10)
        assert status == 200 and record["predictions"]


def test_where_only_banned_words_are_left_there_is_no_answer():
    with start(toy("山雨"), WordFilter(["山"])) as client:
        status, record = ask(client, first="雨", lock=None)
    assert status == 422 and "does not write" in record["error"]


def test_a_greedy_recipe_still_gives_several_candidates():
    with start(toy(LEVEL + OBLIQUE, strategy="greedy", beam_size=1)) as client:
        assert len(ask(client, n_best=3)[1]["predictions"]) == 3
