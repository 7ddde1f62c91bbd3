"""The page where something is amiss: failures as sentences, hostile text, no storage; and without a mouse, by axe."""

import re

import pytest
from chromium import needs_chromium
from page_browser import ask, faint, idle, opened, say, served
from page_couplets import compose, offer_all

pytestmark = needs_chromium
SERVED = ("couplet", "empathetic")
HOSTILE = "<img src=x onerror=\"document.body.id='hit'\">春"


def test_every_failure_is_a_sentence_and_the_button_works_again(page):
    page.fill("#couplet-first", "  ")
    page.click("#couplet-ask")
    assert page.locator("#couplet-error").text_content() == "Write a first line, please."
    assert page.evaluate("document.activeElement.id") == "couplet-first"
    for first, part in (("hello", "no Chinese character"), ("春" * 11, "reads up to 10")):
        ask(page, first)
        assert part in page.locator("#couplet-error").text_content()
    busy = {"status": 503, "headers": {"Retry-After": "7"}, "json": {"error": "full"}}
    refused = {"error": "x", "code": "line_long", "values": {"length": 30, "limit": 20}}
    answers = [
        (busy, "The server is busy; try again in 7 s."),
        ({"status": 500, "json": {"error": "a fault"}}, "The server failed and gave no answer: a fault"),
        ({"status": 502, "body": "<html>"}, "The server failed and gave no answer: HTTP 502"),
        ({"status": 504, "json": {"error": "late"}}, "The server took too long to answer"),
        ({"status": 422, "json": {"error": "odd"}}, "The server did not accept this: odd"),
        ({"status": 422, "json": refused}, "has 30 characters and this model reads up to 20"),
        ({"status": 200, "body": "<html>"}, "The server's answer makes no sense"),
        ({"status": 200, "json": {"predictions": []}}, "The server gave no result; try another line."),
        (None, "The server cannot be reached; check your connection"),
    ]
    for answer, sentence in answers:
        page.route("**/v1/*", lambda route, _, a=answer: route.fulfill(**a) if a else route.abort())
        page.fill("#couplet-first", "雨水月")
        page.click("#couplet-ask")
        page.get_by_text(sentence).wait_for()
        page.unroute("**/v1/*")
    held = []
    page.route("**/v1/couplet", lambda route: held.append(route))
    page.click("#couplet-ask")
    page.press("#couplet-first", "Enter")
    page.locator("#couplet .running button").focus()
    page.click("#tab-empathetic")
    assert page.locator("#empathetic .running").count() == 0  # waiting belongs to its tab
    page.click("#tab-couplet")
    page.click("#couplet .running button")
    idle(page, "#couplet-ask")
    assert len(held) == 1 and page.evaluate("document.activeElement.id") == "couplet-ask"
    assert page.locator("#couplet-error").is_hidden() and page.locator(".running").count() == 0
    page.unroute("**/v1/couplet")
    ask(page, "雨水月")
    assert page.locator(".candidate").count() == 5


def test_text_is_never_markup_and_a_key_or_a_start_is_waited_for(browser):
    second = {"text": HOSTILE, "score": -1.0, "relaxed": [HOSTILE], "form": {"tone_opposed": 1.0}}
    tones = {"first": [HOSTILE], "second": [[HOSTILE]]}
    couplet = {"first": HOSTILE, "line": HOSTILE, "predictions": [second], "tones": tones}
    replies = {"predictions": [{"text": HOSTILE, "score": -1.0}] * 2}
    reply = {"emotion": HOSTILE, "emotions": {HOSTILE: 1.0}, **replies}
    cards = [{"task": task, "family": HOSTILE, "details": {}} for task in ("couplet", "empathetic")]
    answers = {"couplet": couplet, "reply": reply, "models": {"models": cards}}
    full = "Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError'); };"
    loading = {"status": 503, "headers": {"Retry-After": "1"}, "json": {"error": "loading"}}
    with (
        served("couplet", "empathetic", api_key="secret") as address,
        opened(browser, address, ready="#key", prepare=lambda tab: tab.add_init_script(full)) as page,
    ):
        page.route("**/v1/models", lambda route: route.fulfill(**loading), times=1)
        page.fill("#key", "secret")
        page.press("#key", "Enter")
        page.get_by_text("still loading its models").wait_for()
        page.locator("#models:not([hidden])").wait_for()
        assert page.locator("#server-problem").is_hidden()
        ask(page, "雨水月")
        page.click("#couplet-like")
        assert "lost when the page closes" in page.locator("#couplet-error").text_content()
        assert page.locator(".kept-text").count() == 1
        page.route("**/v1/*", lambda route: route.fulfill(json=answers[route.request.url.rsplit("/", 1)[1]]))
        page.reload()
        page.locator("#models:not([hidden])").wait_for(timeout=5000)
        ask(page, HOSTILE)
        assert page.locator("#couplet-pair .first .line").text_content() == re.sub(r"\W|_", "", HOSTILE)
        assert page.locator(".candidate-text").text_content() == HOSTILE
        page.click("#tab-empathetic")
        say(page, HOSTILE)
        assert page.locator(".speaker .bubble").text_content() == f"You: {HOSTILE}"
        page.route("**/v1/couplet", lambda r: r.fulfill(status=422, json={"error": HOSTILE}))
        page.click("#tab-couplet")
        ask(page, HOSTILE)
        assert HOSTILE in page.locator("#couplet-error").text_content()
        assert page.locator("img:not(#picture-image), #hit").count() == 0


def test_axe_finds_nothing_and_all_fits_a_phone(browser, address):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    heights = "all => all.map(one => one.getBoundingClientRect().height).filter(Boolean)"

    def check(page):
        answer = axe.run(page).response
        assert len(answer["passes"]) > 15
        assert [(v["id"], [node["html"] for node in v["nodes"]]) for v in answer["violations"]] == []
        assert faint(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        # WCAG 2.2, 2.5.8
        assert min(page.locator("button, select, summary, .way").evaluate_all(heights)) >= 24

    sizes = {"zh-CN": {"width": 1280, "height": 720}, "en-US": {"width": 360, "height": 640}}
    for scheme, (locale, size) in zip(("light", "dark"), sizes.items(), strict=True):
        settings = {"color_scheme": scheme, "locale": locale, "viewport": size}
        with opened(browser, address, prepare=offer_all, **settings) as page:
            for way in ("second", "own", "theme"):
                page.locator(f"#couplet-ways [value={way}]").check(force=True)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), way
            check(page)
            compose(page) if locale == "en-US" else ask(page, "雨水水，月")
            page.locator("#couplet .print summary").click()
            page.click("#couplet-like")
            check(page)
            page.click("#couplet-edit")
            page.click("#couplet-picture")
            page.locator("#picture-image[src]").wait_for()
            check(page)
            page.click("#picture-close")
            page.select_option("#couplet-ground", "white")
            check(page)
            page.click("#tab-empathetic")
            say(page, "my dog died and Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenbescheid came")
            page.locator(".felt summary").click()
            page.locator(".others summary").click()
            page.click("#empathetic-send")
            page.locator("#models summary").click()
            check(page)
            say(page, "I want to kill myself")
            page.locator(".care a").first.wait_for()
            check(page)


def test_the_keyboard_is_enough(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main" and not page.url.endswith("#main")
    ask(page, "雨水月")
    page.focus("#couplet-pair [data-place='0']")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    assert page.locator("#couplet-pair [aria-pressed=true]").get_attribute("data-place") == "1"
    page.emulate_media(forced_colors="active")
    page.focus("#tab-couplet")
    outline = "at => getComputedStyle(at).outlineStyle"
    assert page.locator("#couplet-pair [aria-pressed=true]").evaluate(outline) == "solid"  # seen there too
    page.emulate_media(forced_colors="none")
    for key, shown in (("ArrowRight", "empathetic"), ("Home", "couplet"), ("End", "empathetic")):
        page.keyboard.press(key)
        assert page.locator(f"#{shown}").is_visible() and f"#{shown}" in page.url
    page.focus("#empathetic-turn")
    page.keyboard.type("my dog")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("died")
    with page.expect_response("**/v1/reply") as response:
        page.keyboard.press("Control+Enter")
    idle(page, "#empathetic-send")
    assert response.value.request.post_data_json["context"] == ["my dog\ndied"]
    page.emulate_media(media="print")
    assert page.locator(".speaker .bubble").is_visible() and page.locator("#empathetic-form").is_hidden()
