"""The page where something is amiss: errors as sentences, hostile text, other languages, small windows, no mouse."""

from __future__ import annotations

import re
from typing import Any

import pytest
from chromium import needs_chromium
from page_browser import ask, idle, low_contrasts, opened, say, served

pytestmark = needs_chromium
SERVED = ("couplet", "empathetic")
HOSTILE = "<img src=x onerror=\"document.body.id='hit'\">春"


def fill(page: Any) -> None:
    """Put something to see in both tabs; the conversation stays open."""
    ask(page, "雨水水，月")
    page.locator("#couplet-pair [data-place='0']").click()
    page.click("#tab-empathetic")
    say(page, "my dog died and Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenbescheid came")
    page.locator(".felt summary").click()
    page.locator(".others summary").click()
    page.locator(".look").click()
    page.locator(".attention").wait_for()


@pytest.mark.parametrize(
    ("first", "part"),
    [
        ("  ", "Write a first line"),
        ("hello", "no Chinese character"),
        ("春" * 11, "11 characters and this model reads up to 10"),
    ],
)
def test_a_line_that_is_none_is_told(page: Any, first: str, part: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/v1/" in request.url else None)
    page.fill("#couplet-first", first)
    page.click("#couplet-ask")
    assert part in page.locator("#couplet-error").text_content()
    assert page.evaluate("document.activeElement.id") == "couplet-first" and asked == []


def test_what_the_server_refuses_is_told_and_mended(page: Any) -> None:
    page.click("#tab-empathetic")
    page.click("#empathetic-send")
    assert page.locator("#empathetic-error").text_content() == "Say something first, please."
    say(page, "a" * 201)
    assert "a turn may have 200 characters at most" in page.locator("#empathetic-error").text_content()
    assert page.locator("#empathetic-turn").input_value() == "a" * 201  # nothing that was written is lost
    say(page, "my dog died")
    assert page.locator("#empathetic-error").is_hidden() and page.locator(".turn").count() == 2


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            {"status": 503, "headers": {"Retry-After": "7"}, "json": {"error": "full"}},
            "The server is busy; try again in 7 s.",
        ),
        ({"status": 500, "json": {"error": "a fault"}}, "The server failed and gave no answer: a fault"),
        ({"status": 502, "body": "<html>"}, "The server failed and gave no answer: HTTP 502"),
        (
            {"status": 504, "json": {"error": "late"}},
            "The server took too long to answer; try again in a while.",
        ),
        (
            {"status": 200, "body": "<html>"},
            "The server's answer makes no sense; its address or version may be wrong.",
        ),
        ({"status": 200, "json": {"predictions": []}}, "The server gave no result; try another line."),
        (None, "The server cannot be reached and may have stopped; check that it runs, then try again."),
    ],
)
def test_every_failure_is_a_sentence_and_the_button_works_again(
    page: Any, answer: Any, sentence: str
) -> None:
    page.route("**/v1/*", lambda route: route.abort() if answer is None else route.fulfill(**answer))
    page.fill("#couplet-first", "雨水月")
    page.click("#couplet-ask")
    page.get_by_text(sentence).wait_for()
    page.unroute("**/v1/*")
    ask(page, "雨水月")
    assert page.locator("#couplet-error").is_hidden() and page.locator(".candidate").count() == 5


def test_a_button_is_busy_while_it_waits_and_asks_once(page: Any) -> None:
    held: list[Any] = []
    page.route("**/v1/couplet", lambda route: held.append(route))
    page.fill("#couplet-first", "雨水月")
    page.click("#couplet-ask")
    page.locator("#couplet-ask[aria-busy=true]").wait_for()
    page.dispatch_event("#couplet-ask", "click")  # a click by Playwright would wait for the button
    page.press("#couplet-first", "Enter")
    assert page.locator("#couplet-status").text_content() == "Writing…"
    assert len(held) == 1
    held[0].continue_()
    idle(page, "#couplet-ask")
    assert page.locator(".candidate").count() == 5


def test_a_task_without_a_model_has_no_tab_and_a_server_that_stops_is_told(browser: Any) -> None:
    server = served("couplet")
    with opened(browser, server.__enter__(), path="/#empathetic") as page:
        assert page.get_by_role("tab").all_text_contents() == ["Couplets"]
        assert page.locator("#couplet-first").is_visible()
        ask(page, "雨水月")
        server.__exit__(None, None, None)
        page.click("#couplet-ask")
        page.get_by_text("The server cannot be reached").wait_for()
        assert page.locator(".candidate").count() == 5  # what was there stays


def test_a_key_is_asked_for(browser: Any) -> None:
    with served("couplet", api_key="secret") as address, opened(browser, address, ready="#key") as page:
        page.fill("#key", "secret")
        page.press("#key", "Enter")
        page.locator("#models a").wait_for()
        assert page.locator("#server-problem").is_hidden()
        ask(page, "雨水月")
        assert page.locator(".candidate").count() == 5


def test_a_server_that_is_still_loading_is_waited_for(page: Any) -> None:
    busy = {"status": 503, "headers": {"Retry-After": "1"}, "json": {"error": "loading"}}
    page.route("**/v1/models", lambda route: route.fulfill(**busy), times=1)
    page.reload()
    page.get_by_text("still loading its models").wait_for()
    page.locator("#models a").wait_for()
    assert page.locator("#server-problem").is_hidden()


def test_text_is_never_markup(page: Any) -> None:
    second = {"text": HOSTILE, "score": -1.0, "relaxed": [HOSTILE], "form": {"tone_opposed": 1.0}}
    tones = {"first": [HOSTILE], "second": [[HOSTILE]]}
    couplet = {"first": HOSTILE, "line": HOSTILE, "predictions": [second], "tones": tones}
    replies = {"predictions": [{"text": HOSTILE, "score": -1.0}] * 2}
    attention = {"attention": {"source": [HOSTILE], "target": [HOSTILE], "weights": [[1.0]]}}
    reply = {"emotion": HOSTILE, "emotions": {HOSTILE: 1.0}, **replies, **attention}
    cards = [{"task": task, "family": HOSTILE, "details": {}} for task in ("couplet", "empathetic")]
    answers = {"couplet": couplet, "reply": reply, "models": {"models": cards}}
    page.route("**/v1/*", lambda route: route.fulfill(json=answers[route.request.url.rsplit("/", 1)[1]]))
    page.reload()
    page.get_by_text(HOSTILE).first.wait_for()
    ask(page, HOSTILE)
    assert (
        page.locator("#couplet-pair .first .line").text_content() == re.sub(r"\W|_", "", HOSTILE)
        and page.locator(".candidate-text").text_content() == HOSTILE
    )
    page.click("#tab-empathetic")
    say(page, HOSTILE)
    page.locator(".others summary").click()
    page.locator(".look").click()
    page.locator(".attention").wait_for()
    assert page.locator(".speaker .bubble").text_content() == f"You: {HOSTILE}"
    page.route("**/v1/couplet", lambda r: r.fulfill(status=422, json={"error": HOSTILE}))
    page.click("#tab-couplet")
    ask(page, HOSTILE)
    assert HOSTILE in page.locator("#couplet-error").text_content()
    assert page.locator("img:not(#keepsake-picture), #hit").count() == 0


def test_the_language_follows_the_browser_and_the_switch(browser: Any, address: str) -> None:
    with opened(browser, address, locale="zh-TW") as page:
        assert page.locator("#couplet-ask").text_content() == "对下联"
        page.click("#couplet-ask")
        assert page.locator("#couplet-error").text_content() == "请先写一句上联。"
        page.get_by_role("button", name="English").click()
        assert page.locator("#couplet-error").text_content() == "Write a first line, please."
        assert page.locator("html").get_attribute("lang") == "en" and page.title() == "Paddle Dialog"
        page.reload()
        page.get_by_role("button", name="Answer it").wait_for()  # remembered
        page.click("#tab-empathetic")
        say(page, "my dog died")
        label = page.locator(".felt summary").text_content()
        page.get_by_role("button", name="中文").click()
        translated = page.locator(".felt summary").text_content()
        assert label.isascii() and translated != label and not translated.isascii()


def test_a_phone_shows_all_without_scrolling_sideways(browser: Any, address: str) -> None:
    with opened(browser, address, viewport={"width": 360, "height": 640}, has_touch=True) as page:
        for first in ("雨水水，月", "雨水月柳鸟雪海客老绿"):
            ask(page, first)
            assert page.evaluate("document.documentElement.scrollWidth") == 360
        # Longer than the tiny model reads: the paper shows it while it is written.
        page.fill("#couplet-first", "春" * 64)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        boxes = [page.locator(f"#couplet-pair .{side}").bounding_box() for side in ("second", "first")]
        assert boxes[0]["x"] >= 0 and boxes[1]["x"] + boxes[1]["width"] <= 360
        fill(page)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        heights = "all => all.map(one => one.getBoundingClientRect().height).filter(Boolean)"
        assert min(page.locator("button, select, summary").evaluate_all(heights)) >= 24  # WCAG 2.2, 2.5.8


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Any, address: str, scheme: str) -> None:
    with opened(browser, address, color_scheme=scheme) as page:
        fill(page)
        page.fill("#empathetic-turn", "")
        page.click("#empathetic-send")
        assert low_contrasts(page) == []
        page.click("#tab-couplet")
        assert low_contrasts(page) == []
        page.fill("#couplet-first", " ")
        page.click("#couplet-ask")
        assert low_contrasts(page) == []


def test_axe_finds_nothing(browser: Any, address: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()

    def check(page: Any) -> None:
        answer = axe.run(page).response
        assert len(answer["passes"]) > 15
        assert [(v["id"], [node["html"] for node in v["nodes"]]) for v in answer["violations"]] == []

    for scheme, locale in (("light", "zh-CN"), ("dark", "en-US")):
        with opened(browser, address, color_scheme=scheme, locale=locale) as page:
            check(page)
            ask(page, "雨水水，月")
            page.locator(".rules summary").click()
            page.locator("#couplet .print summary").click()
            page.click("#couplet-like")
            check(page)
            page.click("#couplet-edit")
            page.click("#couplet-save")
            page.locator("#keepsake-picture[src]").wait_for()
            check(page)
            page.click("#keepsake-close")
            page.fill("#couplet-first", " ")
            page.click("#couplet-ask")
            fill(page)
            check(page)
            page.click("#tab-couplet")
            page.select_option("#couplet-ground", "white")
            check(page)


def test_the_keyboard_is_enough(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main" and not page.url.endswith("#main")
    ask(page, "雨水月")
    page.focus("#couplet-pair [data-place='0']")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    assert page.locator("#couplet-pair [aria-pressed=true]").get_attribute("data-place") == "1"
    assert page.evaluate("document.activeElement.dataset.place") == "1"
    page.focus("#tab-couplet")
    page.keyboard.press("ArrowRight")
    assert page.locator("#empathetic").is_visible() and page.url.endswith("#empathetic")
    page.focus("#empathetic-turn")
    page.keyboard.type("my dog")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("died")
    with page.expect_response("**/v1/reply") as response:
        page.keyboard.press("Enter")
    idle(page, "#empathetic-send")
    assert response.value.request.post_data_json["context"] == ["my dog\ndied"]
