"""The couplet tab beyond 下联: the ways in, the 横批, changes by hand, what is kept, what is printed."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from page_browser import ask, idle, launched, low_contrasts, needs_chromium, opened, served

pytestmark = needs_chromium
FORM = {
    "length_equal": True,
    "punctuation_aligned": True,
    "final_level": True,
    "final_pair": True,
    "tone_opposed": 1.0,
    "repeats_mirrored": True,
    "shares_character": False,
}
SCROLLS = ["春满人间", "国泰民安", "万象更新", "前程似锦", "福满门庭"]
PAIRS = [("李白桃红春色好", "明山秀水画图新"), ("李树逢春开锦绣", "明灯照夜写文章")]
# The characters that reach beyond their sheet; their boxes are higher than they are.
OUTSIDE = """() => [...document.querySelectorAll("#sheets text")].filter((one) => {
  const [text, sheet] = [one, one.ownerSVGElement].map((part) => part.getBoundingClientRect());
  const half = (Number(one.getAttribute("font-size")) * sheet.width) / one.ownerSVGElement.viewBox.baseVal.width / 2;
  const [x, y] = [text.left + text.width / 2, text.top + text.height / 2];
  return x - half < sheet.left || x + half > sheet.right || y - half < sheet.top || y + half > sheet.bottom;
})"""
KNOWN = {"first": "李白桃红春意闹", "second": "明山秀水画图新", "distance": 2}


def composed() -> dict[str, Any]:
    """Return an answer of /v1/compose."""
    couplets = [
        {"first": one, "second": other, "scroll": SCROLLS[0], "scrolls": SCROLLS, "score": -1.0, "form": FORM}
        for one, other in PAIRS
    ]
    couplets[0]["known"] = KNOWN
    couplets[1]["known"] = {"first": PAIRS[1][0], "second": PAIRS[1][1], "distance": 0}
    couplets[1]["relaxed"] = ["final_tone"]
    tones = {"first": [["ze"] * 7] * 2, "second": [["ping"] * 7] * 2}
    return {"couplets": couplets, "tones": tones}


def formed(request: Any) -> dict[str, Any]:
    """Return an answer of /v1/form: every 上联 is 仄, every 下联 平, and nothing is mirrored."""
    first, second = (request.post_data_json[side].replace(" ", "") for side in ("first", "second"))
    tones = {"first": ["ze"] * len(first), "second": ["ping"] * len(second)}
    return {
        "form": {**FORM, "repeats_mirrored": False},
        "tones": tones,
        "broken": ["mirror_repeats", "clause_ends"],
    }


def reversed_answer(request: Any) -> dict[str, Any]:
    """Return an answer of /v1/couplet to a 下联."""
    second = request.post_data_json["second"]
    first = ["天" * len(second), "海" * len(second)]
    tones = {"first": [["ze"] * len(second)] * 2, "second": ["ping"] * len(second)}
    predictions: list[dict[str, Any]] = [{"text": text, "score": -1.0, "form": FORM} for text in first]
    predictions[0]["known"] = {"first": first[0], "second": "海内存知己", "distance": 0}
    return {"second": second, "line": second, "predictions": predictions, "tones": tones}


def offer_all(page: Any) -> None:
    """Let the server offer what only newer weights can do."""

    def models(route: Any) -> None:
        response = route.fetch()
        answer = response.json()
        (card,) = answer["models"]
        card["details"]["reverse"] = True
        card["further"] = {
            "/v1/compose": {"composes": True, "themes": ["茶"], "patterns": ["5", "7", "4+7"]},
            "/v1/form": {},
            "/v1/scroll": {},
        }
        route.fulfill(response=response, json=answer)

    def couplet(route: Any) -> None:
        if "second" in route.request.post_data_json:
            route.fulfill(json=reversed_answer(route.request))
        else:
            route.continue_()

    page.route("**/v1/models", models)
    page.route("**/v1/couplet", couplet)
    page.route("**/v1/compose", lambda route: route.fulfill(json=composed()))
    page.route("**/v1/form", lambda route: route.fulfill(json=formed(route.request)))
    scrolls = {"scrolls": [{"text": text, "score": -1.0} for text in SCROLLS]}
    page.route("**/v1/scroll", lambda route: route.fulfill(json=scrolls))
    page.add_init_script("window.print = () => {}")  # a dialog would wait for somebody


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served("couplet") as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, prepare=offer_all) as tab:
        yield tab


def choose(page: Any, way: str) -> None:
    page.get_by_label(way, exact=True).check(force=True)


def request_of(page: Any, path: str, act: Any) -> dict[str, Any]:
    with page.expect_request(f"**/v1/{path}") as request:
        act()
    idle(page, "#couplet-ask")
    body: dict[str, Any] = request.value.post_data_json
    return body


def compose(page: Any) -> None:
    choose(page, "With a name")
    request_of(page, "compose", lambda: page.get_by_role("button", name="李明").click())


def hung(page: Any) -> tuple[str, str]:
    first, second = (
        "".join(
            page.locator(f"#couplet-pair .{side} .character").evaluate_all(
                "all => all.map(one => one.value || one.textContent)"
            )
        )
        for side in ("first", "second")
    )
    return first, second


def scroll(page: Any) -> list[str]:
    texts: list[str] = page.locator("#couplet-pair .scroll").all_text_contents()
    return texts


def test_an_older_model_offers_only_what_it_can(browser: Any, address: str) -> None:
    cards = {"models": [{"task": "couplet", "path": "/v1/couplet"}]}

    def old(page: Any) -> None:
        page.route("**/v1/models", lambda route: route.fulfill(json=cards))

    with opened(browser, address, prepare=old) as page:
        assert page.locator("#couplet-ways").is_hidden()
        assert page.locator("#couplet-form input:visible").count() == 1
        ask(page, "雨水月")
        assert page.locator("#couplet-scrolls button").count() == 0 and scroll(page) == []


def test_each_way_asks_for_what_was_chosen(page: Any) -> None:
    choose(page, "From a theme")
    body = request_of(page, "compose", lambda: page.get_by_role("button", name="茶").click())
    assert body == {"theme": "茶", "count": 5}
    page.fill("#couplet-theme", "")
    page.select_option("#couplet-shape", "4+7")
    page.select_option("#couplet-count", "3")
    assert request_of(page, "compose", lambda: page.click("#couplet-ask")) == {"pattern": "4+7", "count": 3}
    again = request_of(page, "compose", lambda: page.click("#couplet-ask"))
    assert 0 <= again.pop("seed") < 2**32 and again == {"pattern": "4+7", "count": 3}  # others
    choose(page, "With a name")
    page.select_option("#couplet-shape", "5")
    assert page.locator("#couplet-place option").count() == 5
    page.select_option("#couplet-place", "5")
    body = request_of(page, "compose", lambda: page.get_by_role("button", name="李明").click())
    assert body == {"name": "李明", "place": 5, "pattern": "5", "count": 3}
    page.fill("#couplet-name", "Li")
    page.click("#couplet-ask")
    assert "no Chinese character" in page.locator("#couplet-error").text_content()
    choose(page, "My own pair")
    page.fill("#couplet-first", "雨水月")
    page.click("#couplet-ask")
    assert page.locator("#couplet-error").text_content() == "Write a second line, please."
    page.fill("#couplet-second", "山 花春")
    assert hung(page) == ("雨水月", "山花春")  # while it is being written
    body = request_of(page, "form", lambda: page.click("#couplet-ask"))
    assert body == {"first": "雨水月", "second": "山 花春"}
    assert page.locator(".candidate .mark").all_text_contents() == ["●"] * 3 + ["○"] * 3
    assert page.locator(".score").count() == 0 and page.locator(".rules-kept .broken").count() == 2


def test_a_composed_couplet_hangs_whole_and_says_what_is_known(page: Any) -> None:
    compose(page)
    assert hung(page) == PAIRS[0] and scroll(page) == [SCROLLS[0]]
    above, door = (page.locator(f"#couplet-pair .{part}").bounding_box() for part in ("scroll", "door"))
    assert above["y"] + above["height"] <= door["y"]
    cards = page.locator(".candidate")
    assert cards.locator(".candidate-text").all_inner_texts() == ["\n".join(pair) for pair in PAIRS]
    notes = cards.locator(".known").all_text_contents()
    assert notes[0].startswith("Nearest in the corpus (2 ") and KNOWN["first"] in notes[0]
    assert notes[1].startswith("The couplet stands in the corpus")
    assert "given up here" in cards.nth(1).text_content()
    cards.locator(".candidate-text").nth(1).click()
    assert hung(page) == PAIRS[1]


def test_a_first_line_is_written_for_a_second_and_locked(page: Any) -> None:
    choose(page, "From a second line")
    body = request_of(page, "couplet", lambda: page.get_by_role("button", name="天涯若比邻").click())
    assert body == {"second": "天涯若比邻"} and hung(page) == ("天天天天天", "天涯若比邻")
    assert page.locator(".candidate-text").all_text_contents() == ["天天天天天", "海海海海海"]
    assert page.locator(".known").text_content().startswith("The line stands in the corpus")
    assert page.locator("#couplet-pair .second button").count() == 0
    page.locator("#couplet-pair .first [data-place='1']").click()
    body = request_of(page, "couplet", lambda: page.click("#couplet-again"))
    assert body == {"second": "天涯若比邻", "lock": "？天？？？"}


def test_a_composed_second_line_is_locked_and_written_anew(page: Any) -> None:
    compose(page)
    page.locator("#couplet-pair .second [data-place='0']").click()
    with page.expect_request("**/v1/couplet") as request:
        page.click("#couplet-again")
    assert request.value.post_data_json == {"first": PAIRS[0][0], "lock": "明？？？？？？"}
    assert page.locator("#couplet-first").input_value() == PAIRS[0][0]


def test_the_scroll_is_chosen_taken_down_and_written(page: Any) -> None:
    ask(page, "雨水月")
    choices = page.locator("#couplet-scrolls button")
    choices.first.wait_for()
    assert choices.all_text_contents() == SCROLLS and scroll(page) == [SCROLLS[0]]
    choices.nth(2).click()
    assert scroll(page) == [SCROLLS[2]]
    assert page.locator("#couplet-scrolls [aria-pressed=true]").all_text_contents() == [SCROLLS[2]]
    choices.nth(2).click()
    assert scroll(page) == []
    page.fill("#couplet-scroll", "笔 底春风")
    assert scroll(page) == ["笔底春风"]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#couplet-copy")
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").endswith("\n横批：笔底春风")


def test_the_picture_has_the_scroll_on_top(page: Any) -> None:
    from PIL import Image

    def picture() -> Any:
        with page.expect_download() as download:
            page.click("#couplet-save")
        return Image.open(io.BytesIO(download.value.path().read_bytes())).convert("RGB")

    compose(page)
    page.click("#couplet-font")
    with_scroll = picture()
    page.locator("#couplet-scrolls button").first.click()
    without = picture()
    assert with_scroll.width == without.width and with_scroll.height > without.height + 96
    middle = with_scroll.crop((with_scroll.width // 3, 90, 2 * with_scroll.width // 3, 220))
    red = sum(count for count, (r, g, _) in middle.getcolors(1 << 24) if r > 180 and g < 70)
    assert red > 0.4 * middle.width * middle.height
    assert (
        "Songti SC"
        in page.locator("#couplet-pair .line").first.evaluate("at => getComputedStyle(at).fontFamily")[:20]
    )


def test_characters_are_written_over_and_the_form_follows(page: Any) -> None:
    compose(page)
    page.click("#couplet-edit")
    assert page.evaluate("document.activeElement.dataset.place") == "0"
    page.locator("#couplet-pair .first [data-place='2']").click()
    with page.expect_request("**/v1/form") as request:
        page.keyboard.insert_text("花")
    changed = ("李白花红春色好", PAIRS[0][1])
    assert (
        request.value.post_data_json == {"first": changed[0], "second": changed[1]} and hung(page) == changed
    )
    page.get_by_text("✗ repeats mirrored").wait_for()
    card = page.locator(".candidate").first
    assert "changed by hand" in card.text_content() and card.locator(".score, .known").count() == 0
    assert page.evaluate("document.activeElement.dataset.place") == "3"  # the next one
    page.keyboard.press("ArrowLeft")
    page.keyboard.insert_text("青山绿水多")  # over the end of the line: the last is dropped
    assert hung(page) == (changed[0], "明山秀青山绿水")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Delete")
    page.keyboard.press("Home")
    assert hung(page) == (changed[0], "明山秀青山绿水")  # nothing came instead
    assert page.locator(".candidate-text").nth(1).inner_text() == "\n".join(PAIRS[1])
    page.click("#couplet-restore")
    assert hung(page) == PAIRS[0] and page.locator("#couplet-restore").is_hidden()
    page.click("#couplet-edit")
    assert page.locator("#couplet-pair input").count() == 0


def test_an_input_method_composes_in_the_pair(page: Any) -> None:
    compose(page)
    page.click("#couplet-edit")
    page.locator("#couplet-pair .first [data-place='4']").click()
    keyboard = page.context.new_cdp_session(page)
    for letters in ("q", "qi", "qiu"):
        keyboard.send("Input.imeSetComposition", {"text": letters, "selectionStart": 3, "selectionEnd": 3})
    assert page.locator(".candidate-text").first.inner_text() == "\n".join(PAIRS[0])  # not yet written
    keyboard.send("Input.insertText", {"text": "秋光"})
    assert hung(page)[0] == "李白桃红秋光好"


def test_what_one_likes_is_kept(page: Any) -> None:
    compose(page)
    page.click("#couplet-like")
    page.locator(".candidate-text").nth(1).click()
    page.click("#couplet-like")
    page.reload()
    page.locator("#models a").wait_for()
    kept = page.locator(".liked-text")
    assert kept.all_inner_texts() == ["\n".join([*pair, SCROLLS[0]]) for pair in reversed(PAIRS)]
    with page.expect_response("**/v1/form"):
        kept.nth(1).click()
    assert hung(page) == PAIRS[0] and scroll(page) == [SCROLLS[0]]
    assert page.locator("#couplet-like").text_content() == "Keep no longer"
    with page.expect_download() as download:
        page.click("#couplet-liked-save")
    text = download.value.path().read_text(encoding="utf-8")
    assert text == "\n\n".join(f"{one}\n{other}\n横批：{SCROLLS[0]}" for one, other in reversed(PAIRS)) + "\n"
    page.get_by_role("button", name=f"Remove the couplet {PAIRS[1][0]}").click()
    assert kept.count() == 1 and page.evaluate("document.activeElement.className") == "remove"
    page.click("#couplet-like")
    assert page.locator("#couplet-liked").is_hidden()


@pytest.mark.parametrize("fault", ["full", "forbidden", "spoilt"])
def test_storage_that_fails_loses_nothing_that_is_shown(page: Any, fault: str) -> None:
    full = "Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError'); };"
    forbidden = (
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('SecurityError'); } });"
    )
    spoilt = "localStorage.setItem('paddle_dialog.couplet.liked', '[{\"first\": 1}, null, 7]');"
    page.add_init_script({"full": full, "forbidden": forbidden, "spoilt": spoilt}[fault])
    page.reload()
    page.locator("#models a").wait_for()
    assert page.locator("#couplet-liked").is_hidden()
    compose(page)
    page.click("#couplet-like")
    assert page.locator(".liked-text").count() == 1
    told = page.locator("#couplet-liked-error")
    assert told.is_hidden() if fault == "spoilt" else "it is lost when the page closes" in told.text_content()


def test_sheets_are_printed_in_their_size(page: Any) -> None:
    a4 = (210, 297)
    papers = {
        "one": (1, a4),
        "characters": (18, a4),
        "scrolls": (3, (220, 1300)),
        "halfSheets": (3, (345, 1380)),
    }
    compose(page)
    page.locator("#couplet .print summary").click()
    assert page.locator("#couplet-paper option").count() == len(papers)
    for paper, (count, size) in papers.items():
        page.select_option("#couplet-paper", paper)
        page.click("#couplet-print")
        written = "".join(page.locator("#sheets text").all_text_contents())
        assert written == "".join(PAIRS[0]) + SCROLLS[0]
        page.emulate_media(media="print")
        assert page.locator("#couplet").is_hidden() and page.locator("#sheets svg").first.is_visible()
        assert page.evaluate(OUTSIDE) == []
        pdf = page.pdf(prefer_css_page_size=True)
        points = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
        assert len(points) == count
        assert all(
            abs(float(p) / 72 * 25.4 - mm) < 1 for box in points for p, mm in zip(box, size, strict=True)
        )
        page.emulate_media(media="screen")
        assert page.locator("#sheets *").count() == 0 and page.locator("#couplet").is_visible()  # as before


def test_the_server_composes_and_judges(browser: Any) -> None:
    """Everything through the server's own addresses, with a tiny model."""
    with served("composing") as address, opened(browser, address) as page:
        choose(page, "With a name")
        page.fill("#couplet-name", "山月")
        page.fill("#couplet-theme", "茶")
        page.select_option("#couplet-place", "3")
        with page.expect_response("**/v1/compose") as response:
            page.click("#couplet-ask")
        idle(page, "#couplet-ask")
        couplets = response.value.json()["couplets"]
        assert page.locator(".candidate").count() == len(couplets) > 0
        first, second = hung(page)
        assert (first, second) == (couplets[0]["first"], couplets[0]["second"])
        assert (first[2], second[2]) == ("山", "月") and len(first) == len(second) == 7
        assert (
            scroll(page) == [couplets[0]["scroll"]] and page.locator("#couplet-scrolls button").count() == 5
        )
        assert page.locator("#couplet-themes option").count() > 20
        page.click("#couplet-edit")
        page.locator("#couplet-pair .second [data-place='6']").click()
        with page.expect_response("**/v1/form") as response:
            page.keyboard.insert_text("柳")
        assert response.value.json()["form"]["final_level"] is False
        page.get_by_text("✗ ends 仄 / 平").wait_for()
        page.fill("#couplet-name", "一二三四五六七八九")
        page.click("#couplet-ask")
        page.get_by_text("up to 8 can be placed").wait_for()
        choose(page, "From a second line")
        page.fill("#couplet-second", "雨水山")
        with page.expect_response("**/v1/couplet") as response:
            page.click("#couplet-ask")
        idle(page, "#couplet-ask")
        assert hung(page) == (response.value.json()["predictions"][0]["text"], "雨水山")
        choose(page, "My own pair")
        page.fill("#couplet-first", "天上月")
        page.fill("#couplet-second", "山中云")
        with page.expect_response("**/v1/scroll") as response:
            page.click("#couplet-ask")
        page.locator("#couplet-pair .scroll").wait_for()
        assert scroll(page) == [response.value.json()["scrolls"][0]["text"]]


def test_a_phone_and_both_schemes_show_all(browser: Any, address: str) -> None:
    for scheme in ("light", "dark"):
        size = {"width": 360, "height": 640}
        with opened(browser, address, viewport=size, color_scheme=scheme, prepare=offer_all) as page:
            for way in ("From a second line", "My own pair", "From a theme"):
                choose(page, way)
                assert page.evaluate("document.documentElement.scrollWidth") == 360, way
            compose(page)
            page.click("#couplet-like")
            page.click("#couplet-edit")
            page.locator("#couplet .print summary").click()
            assert page.evaluate("document.documentElement.scrollWidth") == 360
            assert low_contrasts(page) == []
            heights = "all => all.map(one => one.getBoundingClientRect().height).filter(Boolean)"
            assert (
                min(page.locator("button, select, summary, .way").evaluate_all(heights)) >= 24
            )  # WCAG 2.2, 2.5.8
