"""Whole couplets, scrolls and the form of a human's pair over HTTP."""

import json
import signal
from contextlib import contextmanager

import httpx
import pytest
from command import start as begin
from composing_toys import composing_toy
from page_browser import serving
from serving_toys import PATIENCE, EchoEndpoint, eventually, make_app, running

from paddle_dialog.serving.batcher import SLOW
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import Job, WordFilter
from paddle_dialog.serving.models import use_model
from paddle_dialog.tasks.couplet.api import tone_names
from paddle_dialog.tasks.couplet.task import TASK


@contextmanager
def start(predictor=None, words=None):
    """Yield a client of a server of all addresses of the task."""
    predictor, words = predictor or composing_toy(), words or WordFilter()
    endpoints = TASK.endpoints(LimitsConfig(n_best=4))
    load = lambda: [use_model(predictor, endpoints, words)]  # noqa: E731
    with running(make_app(*endpoints, words=words, load=load)) as client:
        yield client


def ask(client, path, **request):
    sent = {"content": json.dumps(request), "headers": {"Content-Type": "application/json"}}
    response = client.post(f"/v1/{path}", **sent)
    return response.status_code, response.json()


def test_couplets_are_those_of_python_with_scrolls_and_tones():
    expected = composing_toy().compose("春节", "江月", count=3, seed=5)
    with start() as client:
        status, answer = ask(client, "compose", theme="春节", name="江月", count=3, seed=5)
        card = client.get("/v1/models").json()["models"][0]["further"]["/v1/compose"]
    assert status == 200 and len(answer["couplets"]) == len(expected)
    for proposal, couplet in zip(expected, answer["couplets"], strict=True):
        assert couplet == proposal.as_dict() | {"scrolls": list(proposal.scrolls)}
        assert couplet["scroll"] == couplet["scrolls"][0] and len(couplet["scrolls"]) == 5
    assert answer["tones"]["first"] == [tone_names(proposal.first) for proposal in expected]
    assert answer["tones"]["second"] == [tone_names(proposal.second) for proposal in expected]
    assert card["composes"] and "春节" in card["themes"] and "4+7" in card["patterns"]


def test_nothing_need_be_asked_and_one_s_own_scroll_stands():
    with start() as client:
        status, answer = ask(client, "compose")
        assert status == 200 and 1 <= len(answer["couplets"]) <= 4  # the server's limit
        _, answer = ask(client, "compose", scroll="小园春色", count=1, pattern="4+5")
        (couplet,) = answer["couplets"]
        assert couplet["scroll"] == "小园春色" and couplet["first"][4] == "，"
        _, answer = ask(client, "compose", name="春江花", count=1)
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
    with serving(endpoint) as address, httpx.Client(base_url=address, timeout=PATIENCE) as client:
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
    with start() as client:
        sent = {"content": '{"theme": "abc"}', "headers": {"Content-Type": "application/json", **LINES}}
        response = client.post("/v1/compose", **sent)
    assert response.status_code == 422 and response.json()["code"] == "theme_not_chinese"


def test_couplets_come_from_a_decoder_while_it_writes_others():
    others = [f"models.{name}=null" for name in ("empathetic", "empathetic_zh", "poem", "translation")]
    others += ["models.sentiment=null", "models.sentiment_en=null", "workers=2", "port=0"]
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


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"theme": "春" * 40}, "has 40 characters"),
        ({"count": 5}, "count"),
        ({"colour": "red"}, "colour"),
        ({"pattern": "\ud800"}, "half of a surrogate pair"),
        ({"scroll": "\udfff"}, "half of a surrogate pair"),
    ],
)
def test_bad_requests_are_told_in_a_sentence(request_, said):
    with start() as client:
        status, answer = ask(client, "compose", **request_)
    assert status == 422 and said in answer["error"] and "\n" not in answer["error"]


def test_an_older_bundle_refuses_to_compose_and_does_the_rest():
    with start(composing_toy(marks=False)) as client:
        status, answer = ask(client, "compose", theme="春节")
        assert status == 422 and answer["error"].startswith("this bundle knows only 下联 for 上联")
        assert ask(client, "couplet", first="雨水月")[0] == 200
        assert ask(client, "scroll", first="春风", second="秋月")[0] == 200
        card = client.get("/v1/models").json()["models"][0]["further"]["/v1/compose"]
    assert card["composes"] is False


def test_banned_words_are_refused_and_never_written():
    words = WordFilter(["春", "喜气"])
    with start(words=words) as client:
        assert ask(client, "compose", theme="春节", name="春")[0] == 422
        for seed in range(4):
            status, answer = ask(client, "compose", seed=seed)
            assert status == 200
            for couplet in answer["couplets"]:
                written = [couplet["first"], couplet["second"], couplet["scroll"], *couplet["scrolls"]]
                assert not any(map(words.finds, written))
        asked = {"first": "爆竹一声除旧岁", "second": "桃符万户换新装", "n_best": 4}
        _, answer = ask(client, "scroll", **asked)
        assert len(answer["scrolls"]) == 4 and not any(words.finds(s["text"]) for s in answer["scrolls"])
    with start() as client:  # the same couplet without the filter
        assert any(words.finds(scroll["text"]) for scroll in ask(client, "scroll", **asked)[1]["scrolls"])


def test_scrolls_for_a_couplet():
    with start() as client:
        status, answer = ask(client, "scroll", first="生意兴隆通四海", second="财源茂盛达三江", n_best=3)
        assert status == 200 and len(answer["scrolls"]) == 3
        assert answer["scrolls"][0]["text"] == "财源广进"
        scores = [scroll["score"] for scroll in answer["scrolls"]]
        assert scores == sorted(scores, reverse=True)
        status, answer = ask(client, "scroll", first="abc", second="春")
        assert status == 422 and "the 上联 has no Chinese character" in answer["error"]


def test_the_form_of_a_pair_that_somebody_wrote():
    with start() as client:
        status, answer = ask(client, "form", first="爆竹一声除旧岁", second="桃符万户换新春")
        assert status == 200 and answer["broken"] == [] and answer["form"]["final_pair"]
        assert answer["tones"]["second"][-1] == "ping"
        _, answer = ask(client, "form", first="清山江天雪海绿", second="清山")
        assert {"alternating_tones", "no_shared_character", "same_length"} <= {*answer["broken"]}
        # 来 and 楼 are both level, and so are 红 and 明 at the second place from the left in the clause
        _, answer = ask(client, "form", first="一枝红杏出墙来", second="半轮明月上高楼")
        assert {"first_final_tone", "opposed_tones"} <= {*answer["broken"]} and not answer["form"][
            "final_pair"
        ]
        for first, second in (("", ""), ("春风", ""), ("", "春风")):
            status, answer = ask(client, "form", first=first, second=second)
            assert status == 200 and not {"same_length", "final_tone", "opposed_tones"} & {*answer["broken"]}
