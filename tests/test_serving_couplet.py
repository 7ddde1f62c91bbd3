"""The couplet's addresses: answers as the command's, locks, rules, batches; whole couplets, scrolls and form."""

import json
import signal
from unittest import mock

import httpx
import pytest
from command import start as begin
from couplet_toys import LEVEL, OBLIQUE, composing_toy, toy
from page_browser import serving
from serving_toys import PATIENCE, EchoEndpoint, eventually, make_app, post, running, served

from paddle_dialog.serving.batcher import SLOW
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import Job, WordFilter
from paddle_dialog.tasks.couplet.api import CoupletEndpoint, tone_names
from paddle_dialog.tasks.couplet.task import TASK

FIRST = "雨水月"


def start(predictor=None, words=None, **limits):
    """Return a server of all addresses of the task."""
    endpoints = TASK.endpoints(LimitsConfig(**limits))
    return served(predictor or toy(LEVEL + OBLIQUE), *endpoints, words=words)


def start_composing(words=None, **options):
    return start(composing_toy(**options), words, n_best=4)


def ask(client, **request):
    return post(client, "couplet", **{"first": FIRST, **request})


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
        status, record = post(client, "couplet", second="雨水山", n_best=3)
        _, locked = post(client, "couplet", second="雨水山", lock="？？鸟")
        assert client.get("/v1/models").json()["models"][0]["details"]["reverse"] is True
    assert status == 200 and "first" not in record
    assert {key: record[key] for key in expected} == expected
    assert record["tones"]["second"] == ["ze", "ze", "ping"]
    assert record["tones"]["first"] == [tone_names(p["text"]) for p in expected["predictions"]]
    assert all(p["text"].endswith("鸟") and p["form"]["final_pair"] for p in locked["predictions"])
    with start() as client:
        status, record = post(client, "couplet", second="雨水山")
        assert status == 422 and "knows only 下联 for 上联" in record["error"]


def test_locked_characters_and_rules_are_kept():
    with start() as client:
        _, locked = ask(client, lock="？山？")
        _, free = ask(client, rules={"enabled": False}, n_best=10)
        _, strict = ask(client, n_best=10)
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
    with mock.patch.object(predictor, "_candidates", wraps=predictor._candidates) as search:
        together = endpoint.answer([job.item for job in jobs[:2]], jobs[0].settings)
    assert search.call_count == 1
    alone = [endpoint.answer([job.item], job.settings)[0] for job in jobs[:2]]
    assert together == alone


def test_banned_words_are_refused_in_line_and_lock_and_never_written():
    with start() as client:
        _, record = ask(client, n_best=10)
        _, free = ask(client, n_best=10, rules={"enabled": False})
    texts = [p["text"] for p in (*record["predictions"], *free["predictions"])]
    words = sorted({text[:2] for text in texts if len(text) > 1})
    filter_ = WordFilter([*words, "香"])
    with start(words=filter_) as client:
        assert ask(client, first="雨香")[0] == ask(client, lock="？香？")[0] == 422
        for rules in (None, {"enabled": False}):
            status, record = ask(client, n_best=10, rules=rules)
            assert status in (200, 422)
            assert not any(filter_.finds(p["text"]) for p in record.get("predictions", ()))
    with start(words=WordFilter(words[:1])) as client:
        status, record = ask(client, n_best=10)
        assert status == 200 and record["predictions"]


def test_where_only_banned_words_are_left_there_is_no_answer():
    with start(toy("山雨"), WordFilter(["山"])) as client:
        status, record = ask(client, first="雨", lock=None)
    assert status == 422 and "does not write" in record["error"]


def test_a_greedy_recipe_still_gives_several_candidates():
    with start(toy(LEVEL + OBLIQUE, strategy="greedy", beam_size=1)) as client:
        assert len(ask(client, n_best=3)[1]["predictions"]) == 3


def test_couplets_are_those_of_python_with_scrolls_and_tones():
    expected = composing_toy().compose("春节", "江月", count=3, seed=5)
    with start_composing() as client:
        status, answer = post(client, "compose", theme="春节", name="江月", count=3, seed=5)
        card = client.get("/v1/models").json()["models"][0]["further"]["/v1/compose"]
    assert status == 200 and len(answer["couplets"]) == len(expected)
    for proposal, couplet in zip(expected, answer["couplets"], strict=True):
        assert couplet == proposal.as_dict() | {"scrolls": list(proposal.scrolls)}
        assert couplet["scroll"] == couplet["scrolls"][0] and len(couplet["scrolls"]) == 5
    assert answer["tones"]["first"] == [tone_names(proposal.first) for proposal in expected]
    assert answer["tones"]["second"] == [tone_names(proposal.second) for proposal in expected]
    assert card["composes"] and "春节" in card["themes"] and "4+7" in card["patterns"]


def test_nothing_need_be_asked_and_one_s_own_scroll_stands():
    with start_composing() as client:
        status, answer = post(client, "compose")
        assert status == 200 and 1 <= len(answer["couplets"]) <= 4  # the server's limit
        _, answer = post(client, "compose", scroll="小园春色", count=1, pattern="4+5")
        (couplet,) = answer["couplets"]
        assert couplet["scroll"] == "小园春色" and couplet["first"][4] == "，"
        _, answer = post(client, "compose", name="春江花", count=1)
        assert [(c["set"], c["part"]) for c in answer["couplets"]] == [(1, 1), (1, 2)]


class SlowEcho(EchoEndpoint):
    """Echoes a text at once, and backwards too once it is open."""

    def prepare(self, request):
        return Job(request.text, 0, cost=SLOW + 1)

    def answer_in_parts(self, item, settings):
        yield {"echo": item}
        assert self.open.wait(PATIENCE)
        yield {"echo": item + item[::-1]}


LINES = {"Accept": "application/x-ndjson"}


def test_what_is_there_is_sent_before_the_rest_is_made():
    endpoint = SlowEcho()
    endpoint.open.clear()
    with serving(make_app(endpoint)) as address, httpx.Client(base_url=address, timeout=PATIENCE) as client:
        compressed = {**LINES, "Accept-Encoding": "gzip"}
        with client.stream("POST", "/v1/echo", json={"text": "ab"}, headers=compressed) as response:
            lines = response.iter_lines()
            assert next(lines) == '{"echo":"ab"}' and response.headers["X-Accel-Buffering"] == "no"
            endpoint.open.set()
            assert [*lines] == ['{"echo":"abba"}'] * 2  # the last part, and the answer
        assert client.post("/v1/echo", json={"text": "ab"}).json() == {"echo": "ab"}  # whole


def test_what_is_there_stays_at_the_time_limit():
    endpoint = SlowEcho()
    endpoint.open.clear()
    with running(make_app(endpoint, limits={"seconds": 0.5})) as client:
        response = client.post("/v1/echo", json={"text": "ab"}, headers=LINES)
        part, refusal = map(json.loads, response.text.splitlines())
        endpoint.open.set()
    assert response.status_code == 200 and part == {"echo": "ab"}
    assert refusal == {"error": "there was no answer within 0.5 seconds; ask for less, or later"}


def test_a_refusal_has_its_status_whatever_is_accepted():
    with start_composing() as client:
        sent = {"content": '{"theme": "abc"}', "headers": {"Content-Type": "application/json", **LINES}}
        response = client.post("/v1/compose", **sent)
    assert response.status_code == 422 and response.json()["code"] == "theme_not_chinese"


def test_couplets_come_from_a_decoder_while_it_writes_others():
    names = ("empathetic", "empathetic_zh", "poem", "translation", "sentiment", "sentiment_en")
    others = [*(f"models.{name}=null" for name in names), "workers=2", "port=0", "limits.seconds=120"]
    process = begin("serve", "-c", "configs/serve.yaml", *(p for o in others for p in ("-o", o)))
    try:
        address = process.stdout.readline().decode().removeprefix("serving on ").strip()
        with httpx.Client(base_url=address, timeout=PATIENCE) as client:
            eventually(lambda: client.get("/readyz").status_code == 200)
            asked = {"theme": "春节", "count": 3, "seed": 5}
            with client.stream("POST", "/v1/compose", json=asked, headers=LINES) as response:
                lines = response.iter_lines()
                first = json.loads(next(lines))
                assert "decode_seconds_count" not in client.get("/metrics").text  # it is still at work
                *_, last = map(json.loads, lines)
            assert first["couplets"] and len(last["couplets"]) == 3
            assert client.post("/v1/compose", json=asked).json() == last
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)


def test_an_older_bundle_refuses_to_compose_and_does_the_rest():
    with start_composing(marks=False) as client:
        status, answer = post(client, "compose", theme="春节")
        assert status == 422 and answer["error"].startswith("this bundle knows only 下联 for 上联")
        assert post(client, "couplet", first="雨水月")[0] == 200
        assert post(client, "scroll", first="春风", second="秋月")[0] == 200
        card = client.get("/v1/models").json()["models"][0]["further"]["/v1/compose"]
    assert card["composes"] is False


def test_banned_words_are_refused_and_never_composed():
    words = WordFilter(["春", "喜气"])
    with start_composing(words) as client:
        assert post(client, "compose", theme="春节", name="春")[0] == 422
        for seed in range(4):
            status, answer = post(client, "compose", seed=seed)
            assert status == 200
            for couplet in answer["couplets"]:
                written = [couplet["first"], couplet["second"], couplet["scroll"], *couplet["scrolls"]]
                assert not any(map(words.finds, written))
        asked = {"first": "爆竹一声除旧岁", "second": "桃符万户换新装", "n_best": 4}
        _, answer = post(client, "scroll", **asked)
        assert len(answer["scrolls"]) == 4 and not any(words.finds(s["text"]) for s in answer["scrolls"])
    with start_composing() as client:  # the same couplet without the filter
        assert any(words.finds(scroll["text"]) for scroll in post(client, "scroll", **asked)[1]["scrolls"])


def test_scrolls_for_a_couplet():
    with start_composing() as client:
        status, answer = post(client, "scroll", first="生意兴隆通四海", second="财源茂盛达三江", n_best=3)
        assert status == 200 and len(answer["scrolls"]) == 3
        assert answer["scrolls"][0]["text"] == "财源广进"
        scores = [scroll["score"] for scroll in answer["scrolls"]]
        assert scores == sorted(scores, reverse=True)


def test_the_form_of_a_pair_that_somebody_wrote():
    with start_composing() as client:
        status, answer = post(client, "form", first="爆竹一声除旧岁", second="桃符万户换新春")
        assert status == 200 and answer["broken"] == [] and answer["form"]["final_pair"]
        assert answer["tones"]["second"][-1] == "ping"
        _, answer = post(client, "form", first="清山江天雪海绿", second="清山")
        assert {"alternating_tones", "no_shared_character", "same_length"} <= {*answer["broken"]}
        # 来 and 楼 are both level, and so are 红 and 明 at the second place from the left in the clause
        _, answer = post(client, "form", first="一枝红杏出墙来", second="半轮明月上高楼")
        assert {"first_final_tone", "opposed_tones"} <= {*answer["broken"]}
        assert not answer["form"]["final_pair"]
        for first, second in (("", ""), ("春风", ""), ("", "春风")):
            status, answer = post(client, "form", first=first, second=second)
            assert status == 200 and not {"same_length", "final_tone", "opposed_tones"} & {*answer["broken"]}
